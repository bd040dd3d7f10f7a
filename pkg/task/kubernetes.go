// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/gate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubernetes"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/node"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/upgrade"
)

// The outputs by which hosts join by kubeadm.
var (
	// bootstrapToken is a token that a kubelet may join with.
	bootstrapToken = graph.Output[string]{Name: "bootstrap-token"}
	// configUploaded: the cluster knows what joins its control plane.
	configUploaded = graph.Output[string]{Name: "kubeadm-config-uploaded"}
)

// Kubelet installs the kubelet, which kubeadm then starts.
func Kubelet(in component.Inputs) plan.Task {
	etcdDir := ""
	if in.RunsEtcd() && in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm {
		etcdDir = in.Target.Cluster.Etcd.DataDir
	}
	steps := []step.Step{
		kubeadm.Claim(etcdDir),
		kubelet.Programs(in.Programs("kubernetes")),
		kubelet.Unit(),
	}
	if in.OwnResolv() {
		steps = append(steps, kubelet.Resolv(component.Forwards(in.System)))
	}
	return plan.Task{Name: "kubelet", Steps: steps}
}

// KubeadmControlPlane makes the host a part of the control plane: its first, or one more.
func KubeadmControlPlane(in component.Inputs) plan.Task {
	start := kubeadm.Init(kubeadmCluster(in), kubeadmNode(in), component.Initialized)
	if !in.First() {
		after := append([]string{component.APIAnswers.Name, configUploaded.Name}, in.After...)
		start = kubeadm.JoinControlPlane(kubeadmCluster(in), kubeadmNode(in), bootstrapToken, component.Joined(in.Target.Host.Name), after...)
	}
	ownEtcd := in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm
	steps := []step.Step{kubeadm.Authorities(ownEtcd)}
	if ownEtcd {
		steps = append(steps, kubeadm.EtcdData(kubeadmCluster(in), kubeadmNode(in), in.First()))
	}
	if k := in.Target.Cluster.Kubernetes; k.EncryptionAtRest.IsOn() {
		steps = append(steps, apiserver.Encryption(k))
	}
	steps = append(steps,
		kubeadm.NodeCertificates(kubeadmCluster(in), kubeadmNode(in)),
		apiserver.Files(in.Cluster().Kubernetes),
		start,
		kubeadm.StaticPods(kubeadmCluster(in), kubeadmNode(in)),
		kubeadm.KubeletConfig(kubeadmCluster(in), kubeadmNode(in), upgrade.Dir),
		kubelet.Service(in.Programs("kubernetes"), kubeadm.KubeletReads()...),
		kubelet.Healthy(kubeadmNode(in).Kubelet),
	)
	if in.Target.Cluster.Certificates.RenewBefore() > 0 {
		steps = append(steps, kubeadm.Certificates(kubeadmCluster(in), kubeadmNode(in)))
	}
	return plan.Task{Name: "kubeadm", Steps: steps}
}

// KubeadmWorker makes the host a worker.
func KubeadmWorker(in component.Inputs) plan.Task {
	return plan.Task{Name: "kubeadm", Steps: []step.Step{
		kubeadm.NodeCertificates(kubeadmCluster(in), kubeadmNode(in)),
		kubeadm.Join(kubeadmCluster(in), kubeadmNode(in), bootstrapToken, component.Joined(in.Target.Host.Name)),
		kubeadm.KubeletConfig(kubeadmCluster(in), kubeadmNode(in), upgrade.Dir),
		kubelet.Service(in.Programs("kubernetes"), kubeadm.KubeletReads()...),
		kubelet.Healthy(kubeadmNode(in).Kubelet),
	}}
}

func kubeadmCluster(in component.Inputs) kubeadm.Cluster {
	c := kubeadm.Cluster{
		Name: in.Target.ClusterName, Version: in.Target.KubernetesVersion, Spec: in.Cluster(),
	}
	if in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm {
		c.EtcdImageTag = tag(in.ImageRef("etcd"))
	} else {
		c.EtcdEndpoints = etcdEndpoints(in)
	}
	return c
}

func kubeadmNode(in component.Inputs) kubeadm.Node {
	resolv := ""
	if in.OwnResolv() {
		resolv = kubelet.ResolvConf
	}
	n := kubeadm.NodeOf(&in.Target, in.Runtime.Endpoint(), resolv)
	n.SecondAddress = in.SecondAddress()
	n.CgroupDriver, n.CgroupVersion = in.CgroupDriver(), in.System.CgroupVersion
	return n
}

func tag(ref string) string { return ref[strings.LastIndex(ref, ":")+1:] }

// Withdraw ends the host's API server.
func Withdraw(in component.Inputs) plan.Task {
	end := kubeadm.Withdraw(kubeadmCluster(in), kubeadmNode(in))
	if in.IsBinary() {
		end = kubernetes.Withdraw()
	}
	return plan.Task{Name: "withdraw", Steps: []step.Step{end}}
}

// API is the gate that opens when the API server answers. In a plan with the first control plane host it comes after that.
func API(in component.Inputs) plan.Task {
	if in.First() {
		return plan.Task{Name: "api", Steps: []step.Step{gate.API(component.APIAnswers, component.Initialized.Name)}}
	}
	return plan.Task{Name: "api", Steps: []step.Step{gate.API(component.APIAnswers)}}
}

// KubeadmConfig is the gate that tells the cluster what joins its control plane.
func KubeadmConfig(in component.Inputs) plan.Task {
	return plan.Task{Name: "kubeadm-config", Steps: []step.Step{kubeadm.Uploaded(kubeadmCluster(in), component.APIAnswers, configUploaded)}}
}

// BootstrapToken is the gate that makes a token to join with.
func BootstrapToken(component.Inputs) plan.Task {
	return plan.Task{Name: "token", Steps: []step.Step{gate.Token(bootstrapToken, component.APIAnswers)}}
}

// NodeReady is the gate that opens when the host's Node is Ready and its network is up; its Node then has the host's role, and the
// labels and taints that are declared.
func NodeReady(in component.Inputs) plan.Task {
	name, role := in.Target.Host.Name, "worker"
	after := component.Joined(name).Name
	if in.IsControlPlane() {
		role = "control-plane"
	}
	if in.First() {
		after = component.NetworkDeployed.Name
	}
	namespace, agent := in.Network.Agent()
	return plan.Task{Name: "ready-" + name, Steps: []step.Step{
		gate.NodeReady(name, after), gate.Network(name, namespace, agent),
		node.Metadata(name, role, in.Target.Node.NodeLabels, in.Target.Node.DeclaredTaints()),
		node.Uncordon(name, restartedPods(in), upgraded(name)),
	}}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/gate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubernetes"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/node"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/upgrade"
)

// Kubelet installs the kubelet, which kubeadm then starts.
func Kubelet(in Inputs) plan.Task {
	etcdDir := ""
	if in.runsEtcd() && in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm {
		etcdDir = in.Target.Cluster.Etcd.DataDir
	}
	steps := []step.Step{
		kubeadm.Claim(etcdDir),
		kubelet.Programs(in.kubernetes),
		kubelet.Unit(),
	}
	if in.ownResolv() {
		steps = append(steps, kubelet.Resolv(forwards(in.System)))
	}
	return plan.Task{Name: "kubelet", Steps: steps}
}

// KubeadmControlPlane makes the host a part of the control plane: its first, or one more.
func KubeadmControlPlane(in Inputs) plan.Task {
	start := kubeadm.Init(in.kubeadmCluster(), in.kubeadmNode(), initialized)
	if !in.first() {
		after := append([]string{apiAnswers.Name, configUploaded.Name}, in.After...)
		start = kubeadm.JoinControlPlane(in.kubeadmCluster(), in.kubeadmNode(), bootstrapToken, joined(in.Target.Host.Name), after...)
	}
	ownEtcd := in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm
	steps := []step.Step{kubeadm.Authorities(ownEtcd)}
	if ownEtcd {
		steps = append(steps, kubeadm.EtcdData(in.kubeadmCluster(), in.kubeadmNode(), in.first()))
	}
	if k := in.Target.Cluster.Kubernetes; k.EncryptionAtRest.IsOn() {
		steps = append(steps, apiserver.Encryption(k))
	}
	steps = append(steps,
		kubeadm.NodeCertificates(in.kubeadmCluster(), in.kubeadmNode()),
		apiserver.Files(in.Target.Cluster.Kubernetes),
		start,
		kubeadm.StaticPods(in.kubeadmCluster(), in.kubeadmNode()),
		kubeadm.KubeletConfig(in.kubeadmCluster(), in.kubeadmNode(), upgrade.Dir),
		kubelet.Service(in.kubernetes, kubeadm.KubeletReads()...),
		kubelet.Healthy(in.kubeadmNode().Kubelet),
	)
	if in.Target.Cluster.Certificates.RenewBefore() > 0 {
		steps = append(steps, kubeadm.Certificates(in.kubeadmCluster(), in.kubeadmNode()))
	}
	return plan.Task{Name: "kubeadm", Steps: steps}
}

// KubeadmWorker makes the host a worker.
func KubeadmWorker(in Inputs) plan.Task {
	return plan.Task{Name: "kubeadm", Steps: []step.Step{
		kubeadm.NodeCertificates(in.kubeadmCluster(), in.kubeadmNode()),
		kubeadm.Join(in.kubeadmCluster(), in.kubeadmNode(), bootstrapToken, joined(in.Target.Host.Name)),
		kubeadm.KubeletConfig(in.kubeadmCluster(), in.kubeadmNode(), upgrade.Dir),
		kubelet.Service(in.kubernetes, kubeadm.KubeletReads()...),
		kubelet.Healthy(in.kubeadmNode().Kubelet),
	}}
}

func (in Inputs) kubeadmCluster() kubeadm.Cluster {
	c := kubeadm.Cluster{
		Name: in.Target.ClusterName, Version: in.Target.KubernetesVersion, Spec: in.Target.Cluster,
	}
	if in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm {
		c.EtcdImageTag = tag(in.refs["etcd"])
	} else {
		c.EtcdEndpoints = in.etcdEndpoints()
	}
	return c
}

func (in Inputs) kubeadmNode() kubeadm.Node {
	resolv := ""
	if in.ownResolv() {
		resolv = kubelet.ResolvConf
	}
	n := kubeadm.NodeOf(&in.Target, resolv)
	n.SecondAddress = in.secondAddress()
	n.CgroupDriver, n.CgroupVersion = in.cgroupDriver(), in.System.CgroupVersion
	return n
}

func tag(ref string) string { return ref[strings.LastIndex(ref, ":")+1:] }

// Withdraw ends the host's API server.
func Withdraw(in Inputs) plan.Task {
	end := kubeadm.Withdraw(in.kubeadmCluster(), in.kubeadmNode())
	if in.isBinary() {
		end = kubernetes.Withdraw()
	}
	return plan.Task{Name: "withdraw", Steps: []step.Step{end}}
}

// API is the gate that opens when the API server answers. In a plan with the first control plane host it comes after that.
func API(in Inputs) plan.Task {
	if in.first() {
		return plan.Task{Name: "api", Steps: []step.Step{gate.API(apiAnswers, initialized.Name)}}
	}
	return plan.Task{Name: "api", Steps: []step.Step{gate.API(apiAnswers)}}
}

// KubeadmConfig is the gate that tells the cluster what joins its control plane.
func KubeadmConfig(in Inputs) plan.Task {
	return plan.Task{Name: "kubeadm-config", Steps: []step.Step{kubeadm.Uploaded(in.kubeadmCluster(), apiAnswers, configUploaded)}}
}

// BootstrapToken is the gate that makes a token to join with.
func BootstrapToken(Inputs) plan.Task {
	return plan.Task{Name: "token", Steps: []step.Step{gate.Token(bootstrapToken, apiAnswers)}}
}

// NodeReady is the gate that opens when the host's Node is Ready and its network is up; its Node then has the host's role, and the
// labels and taints that are declared.
func NodeReady(in Inputs) plan.Task {
	name, role := in.Target.Host.Name, "worker"
	after := joined(name).Name
	if in.isControlPlane() {
		role = "control-plane"
	}
	if in.first() {
		after = networkDeployed.Name
	}
	return plan.Task{Name: "ready-" + name, Steps: []step.Step{
		gate.NodeReady(name, after), gate.Network(name, flannel.Namespace, flannel.DaemonSet),
		node.Metadata(name, role, in.Target.Node.NodeLabels, in.Target.Node.DeclaredTaints()),
		node.Uncordon(name, in.restartedPods(), upgraded(name)),
	}}
}

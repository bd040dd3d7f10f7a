// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/gate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/node"
)

// Kubelet installs the kubelet, which kubeadm then starts.
func Kubelet(in Inputs) plan.Task {
	etcdDir := ""
	if in.first() {
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

// Init makes the host the first of the control plane.
func Init(in Inputs) plan.Task {
	return plan.Task{Name: "kubeadm", Steps: []step.Step{
		kubeadm.Authorities(),
		kubeadm.Init(in.kubeadmCluster(), in.kubeadmNode()),
		kubeadm.DNS(initialized),
		kubelet.Service(in.kubernetes),
	}}
}

// Join makes the host a worker.
func Join(in Inputs) plan.Task {
	return plan.Task{Name: "kubeadm", Steps: []step.Step{
		kubeadm.Join(in.kubeadmCluster(), in.kubeadmNode(), bootstrapToken, joined(in.Target.Host.Name)),
		kubelet.Service(in.kubernetes),
	}}
}

func (in Inputs) kubeadmCluster() kubeadm.Cluster {
	return kubeadm.Cluster{
		Name: in.Target.ClusterName, Version: in.Target.KubernetesVersion, Spec: in.Target.Cluster,
		EtcdImageTag: tag(in.refs["etcd"]), CoreDNSImageTag: tag(in.refs["coredns"]),
		FixedConntrack: in.System.Container != "",
	}
}

func (in Inputs) kubeadmNode() kubeadm.Node {
	resolv := ""
	if in.ownResolv() {
		resolv = kubelet.ResolvConf
	}
	n := kubeadm.NodeOf(&in.Target, resolv)
	n.CgroupDriver, n.CgroupVersion = in.cgroupDriver(), in.System.CgroupVersion
	return n
}

func tag(ref string) string { return ref[strings.LastIndex(ref, ":")+1:] }

// API is the gate that opens when the API server answers. In a plan with the first control plane host it comes after that.
func API(in Inputs) plan.Task {
	if in.first() {
		return plan.Task{Name: "api", Steps: []step.Step{gate.API(apiAnswers, initialized.Name)}}
	}
	return plan.Task{Name: "api", Steps: []step.Step{gate.API(apiAnswers)}}
}

// BootstrapToken is the gate that makes a token to join with.
func BootstrapToken(Inputs) plan.Task {
	return plan.Task{Name: "token", Steps: []step.Step{gate.Token(bootstrapToken, apiAnswers)}}
}

// NodeReady is the gate that opens when the host's Node is Ready; a worker's Node is then labelled as one (kubeadm labels
// only the control plane's).
func NodeReady(in Inputs) plan.Task {
	name := in.Target.Host.Name
	if in.first() {
		return plan.Task{Name: "ready-" + name, Steps: []step.Step{gate.NodeReady(name, networkDeployed.Name)}}
	}
	return plan.Task{Name: "ready-" + name, Steps: []step.Step{
		gate.NodeReady(name, joined(name).Name),
		node.Role(name, "worker"),
	}}
}

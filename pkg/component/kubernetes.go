// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// ControlPlaneTurn is the turn (step.Savepoint.Turn) of hosts whose control plane is changed: one at a time.
const ControlPlaneTurn = "control-plane"

// Kubernetes is the slot of what makes a host a Node, and runs the control plane's components on some. One fills it, for the life of the
// cluster.
type Kubernetes interface {
	// Needs are what it takes from the bundle for a host.
	Needs(in Inputs) Needs
	// Check refuses what no Node can be made from.
	Check(in Inputs) error
	// Install puts its programs on a Node, before etcd. Whatever the host has of a load balancer comes after that, and then ControlPlane or
	// Worker.
	Install(in Inputs) plan.Task
	// ControlPlane makes the host a part of the control plane, and a Node. On the first host it makes Initialized, on others Joined.
	ControlPlane(in Inputs) []plan.Task
	// Worker makes the host a Node and nothing else, which makes Joined.
	Worker(in Inputs) []plan.Task
	// Steady waits until what runs on a Node has been up for a while. What else a run waits for goes on beside it.
	Steady(in Inputs) []step.Step
	// Gates are what the cluster's API is told, when it answers (APIAnswers), because of the host: what it joins by, for instance.
	Gates(in Inputs) []plan.Task
	// Programs are those whose replacement disturbs the Node, which is drained before, and Kept the files that it then writes by itself.
	Programs(in Inputs) []step.Artifact
	Kept(in Inputs) []string
	// EtcdClients are units on a control plane host that use its etcd and come after it in systemd's order: with etcd, they are restarted,
	// because an etcd that ends waits for them to go.
	EtcdClients(in Inputs) []string
	// Withdraw ends the host's API server, whose etcd member is about to go.
	Withdraw(in Inputs) plan.Task
	// Halt ends the control plane on a host, but etcd, for the restore of that ID; Resume starts it again. Each makes the output done.
	Halt(in Inputs, id, done string, after ...string) plan.Task
	Resume(in Inputs, id, done string, after ...string) plan.Task
	// Restart restarts those components of the control plane on a host that r asks for, on one host of the cluster at a time: first etcd,
	// by its own steps or as it is one of Kubernetes' pods, and each when what comes before is well. There are none where r asks for
	// nothing.
	Restart(in Inputs, r Restart, etcd []step.Step) []step.Step
	KubernetesCertificates
	KubernetesPods
}

// Node is the host as its kubelet has it.
func (in Inputs) Node() kubelet.Node {
	resolv := ""
	if in.OwnResolv() {
		resolv = kubelet.ResolvConf
	}
	n := kubelet.NodeOf(&in.Target, in.Runtime.Endpoint(), resolv)
	n.SecondAddress = in.SecondAddress()
	n.CgroupDriver, n.CgroupVersion = in.CgroupDriver(), in.System.CgroupVersion
	return n
}

// KubernetesCertificates are those of Kubernetes' components on a host.
type KubernetesCertificates interface {
	// Certificates are those of its steps that make some.
	Certificates(in Inputs) []step.Step
	// OtherCertificates are those that are made otherwise. Renew makes those of them anew that have one of these names, if any.
	OtherCertificates(in Inputs) []Certificate
	Renew(in Inputs, names []string, asked time.Time, after ...string) []step.Step
	// Renewed comes after all certificates of a host were made anew, and makes done when what uses them is well.
	Renewed(in Inputs, done graph.Output[string]) step.Step
}

// KubernetesPods are what can be seen of a control plane through its API.
type KubernetesPods interface {
	// ArePods reports whether the control plane's components are static pods, of which the API has an image each.
	ArePods() bool
	// JoinsByKubeadm reports whether the cluster has what "kubeadm join" reads: the ConfigMaps kube-public/cluster-info, kubeadm-config
	// and kubelet-config, and what bootstrap tokens may do with them.
	JoinsByKubeadm() bool
	// MakesEtcdPods reports whether it makes etcd's static pods, too, where etcd is such.
	MakesEtcdPods() bool
	// Initialized is the ConfigMap in kube-system that is made last when a control plane begins.
	Initialized() string
}

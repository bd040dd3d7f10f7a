// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/gate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/node"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/upgrade"
)

// Upgrade comes before the first program that a Node runs: where one is in use and is to be replaced, the Node is drained, and on a
// control plane host a snapshot of etcd is saved.
func Upgrade(in component.Inputs) plan.Task {
	programs := slices.Concat(in.Runtime.Programs(in), in.Programs("kubernetes"))
	begin := upgrade.Begin(programs, keeps(in), drained(in.Target.Host.Name))
	if in.IsControlPlane() {
		begin = upgrade.Begin(programs, keeps(in), drained(in.Target.Host.Name), etcdAccess(in).Save())
	}
	return plan.Task{Name: "upgrade", Steps: []step.Step{begin}}
}

// Installed comes after the last of them.
func Installed(in component.Inputs) plan.Task {
	return plan.Task{Name: "installed", Steps: []step.Step{upgrade.Installed(installed(in.Target.Host.Name))}}
}

// Upgraded comes when the Node was seen well with them: there is no way back then.
func Upgraded(in component.Inputs) plan.Task {
	name := in.Target.Host.Name
	return plan.Task{Name: "upgraded", Steps: []step.Step{upgrade.End(verified(name), upgraded(name))}}
}

// Drain is the gate of Upgrade.
func Drain(in component.Inputs) plan.Task {
	name := in.Target.Host.Name
	return plan.Task{Name: "drain-" + name, Steps: []step.Step{node.Drain(name, drained(name))}}
}

// Verify is the gate of Upgraded.
func Verify(in component.Inputs) plan.Task {
	name := in.Target.Host.Name
	return plan.Task{Name: "verify-" + name, Steps: []step.Step{
		gate.NodeVersion(name, in.Target.KubernetesVersion, installed(name), verified(name)),
	}}
}

// keeps are the files that kubeadm writes by itself on the host, and that another version writes anew.
func keeps(in component.Inputs) []string {
	if in.IsBinary() {
		return nil
	}
	return kubeadm.Kept(in.IsControlPlane(), kubeadmRunsEtcd(in))
}

// restartedPods are the DaemonSets whose Pods run what the host has: where components are units, none.
func restartedPods(in component.Inputs) []string {
	if in.IsBinary() {
		return nil
	}
	return []string{kubeproxy.DaemonSet}
}

// drained: the Node has no Pods that would miss it.
func drained(name string) graph.Output[string] { return graph.Output[string]{Name: "drained/" + name} }

// installed: the Node's programs run.
func installed(name string) graph.Output[string] {
	return graph.Output[string]{Name: "installed/" + name}
}

// verified: the Node was seen well with its programs.
func verified(name string) graph.Output[string] {
	return graph.Output[string]{Name: "verified/" + name}
}

// upgraded: nothing of the Node's programs is half way.
func upgraded(name string) graph.Output[string] {
	return graph.Output[string]{Name: "upgraded/" + name}
}

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
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/node"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/upgrade"
)

// API is the gate that opens when the API server answers. In a plan with the first control plane host it comes after that.
func API(in component.Inputs) plan.Task {
	if in.First() {
		return Answers(component.Initialized.Name)
	}
	return Answers()
}

// Answers is the gate that opens when the API server answers that these outputs say was started.
func Answers(after ...string) plan.Task {
	return plan.Task{Name: "api", Steps: []step.Step{gate.API(component.APIAnswers, after...)}}
}

// NodeReady is the gate that opens when the host's Node is Ready and its network is up, or, where users install the network, when its
// kubelet has registered; its Node then has the host's role, and the labels and taints that are declared.
func NodeReady(in component.Inputs) plan.Task {
	name, role := in.Target.Host.Name, "worker"
	after := component.Joined(name).Name
	if in.IsControlPlane() {
		role = "control-plane"
	}
	namespace, agent := in.Network.Agent()
	var gates []step.Step
	switch {
	case agent == "" && in.First():
		gates = []step.Step{gate.NodeRegistered(name, in.Target.KubernetesVersion, component.APIAnswers.Name)}
	case agent == "":
		gates = []step.Step{gate.NodeRegistered(name, in.Target.KubernetesVersion, after)}
	case in.First():
		gates = []step.Step{gate.NodeReady(name, component.NetworkDeployed.Name), gate.Network(name, namespace, agent)}
	default:
		gates = []step.Step{gate.NodeReady(name, after), gate.Network(name, namespace, agent)}
	}
	return plan.Task{Name: "ready-" + name, Steps: append(gates,
		node.Metadata(name, role, in.Target.Node.NodeLabels, in.Target.Node.DeclaredTaints()),
		node.Uncordon(name, in.ServiceProxy.DaemonSets(), upgraded(name)),
	)}
}

// Upgrade comes before the first program that a Node runs: where one is in use and is to be replaced, the Node is drained, and on a
// control plane host a snapshot of etcd is saved.
func Upgrade(in component.Inputs) plan.Task {
	programs, kept := slices.Concat(in.Runtime.Programs(in), in.Kubernetes.Programs(in)), in.Kubernetes.Kept(in)
	begin := upgrade.Begin(programs, kept, drained(in.Target.Host.Name))
	if in.IsControlPlane() {
		begin = upgrade.Begin(programs, kept, drained(in.Target.Host.Name), in.Etcd.Save(in))
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
	return plan.Task{Name: "upgraded", Steps: append(in.Kubernetes.Steady(in), upgrade.End(verified(name), upgraded(name)))}
}

// Drain is the gate of Upgrade.
func Drain(in component.Inputs) plan.Task {
	name := in.Target.Host.Name
	return plan.Task{Name: "drain-" + name, Steps: []step.Step{node.Drain(name, drained(name))}}
}

// Verify is the gate of Upgraded.
func Verify(in component.Inputs) plan.Task {
	name := in.Target.Host.Name
	verify := gate.NodeVersion
	if _, agent := in.Network.Agent(); agent == "" {
		verify = gate.RegisteredVersion
	}
	return plan.Task{Name: "verify-" + name, Steps: []step.Step{verify(name, in.Target.KubernetesVersion, installed(name), verified(name))}}
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

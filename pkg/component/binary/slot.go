// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/renewal"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/upgrade"
)

// Kubernetes is a unit of systemd for each component.
type Kubernetes struct{}

var _ component.Kubernetes = Kubernetes{}

// serving: the host's own API server is ready.
func serving(name string) graph.Output[string] { return graph.Output[string]{Name: "serving/" + name} }

// Needs are the programs.
func (Kubernetes) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	return component.Needs{Programs: []component.Programs{{Component: "kubernetes", Names: ProgramNames(in.IsControlPlane(), in.ServiceProxy.Unit())}}}
}

// Check refuses what the components of a Node cannot be configured for.
func (Kubernetes) Check(in component.Inputs) error {
	if !in.IsNode() {
		return nil
	}
	return Check(cluster(in), node(in))
}

// Install puts the programs there, and makes what all hosts have of the cluster's trust.
func (Kubernetes) Install(in component.Inputs) plan.Task {
	steps := []step.Step{Claim(), Programs(in.Programs("kubernetes"))}
	if in.OwnResolv() {
		steps = append(steps, kubelet.Resolv(component.Forwards(in.System)))
	}
	if in.IsControlPlane() {
		steps = append(steps, Authorities())
	} else {
		steps = append(steps, WorkerAuthority())
	}
	return plan.Task{Name: "components", Steps: steps}
}

// ControlPlane runs the API server and the controllers, and then a kubelet; the kubelet first, and etcd, where etcd is a pod of it.
func (k Kubernetes) ControlPlane(in component.Inputs) []plan.Task {
	if in.Etcd.IsPod() {
		tasks := append(k.Worker(in), in.Etcd.Tasks(in)...)
		return append(tasks, controlPlane(in))
	}
	return append([]plan.Task{controlPlane(in)}, k.Worker(in)...)
}

func controlPlane(in component.Inputs) plan.Task {
	c, n := cluster(in), node(in)
	done := serving(n.Name)
	if in.First() {
		done = component.Initialized
	}
	steps := []step.Step{Certificates(c, n), Kubeconfigs(c, n), apiserver.Files(c.Spec.Kubernetes)}
	if k := c.Spec.Kubernetes; k.EncryptionAtRest.IsOn() {
		steps = append(steps, apiserver.Encryption(k))
	}
	return plan.Task{Name: "control-plane", Steps: append(steps,
		BeginChange(c, n),
		APIServer(c, n),
		Ready(c, done),
		ControllerManager(c, n),
		Scheduler(c, n),
		EndChange(c, n),
	)}
}

// Worker runs the kubelet and kube-proxy. They need no API server to start.
func (Kubernetes) Worker(in component.Inputs) []plan.Task {
	c, n := cluster(in), node(in)
	steps := []step.Step{
		NodeCertificates(c, n),
		NodeKubeconfigs(c, n),
		BeginKubelet(c, n, upgrade.Dir),
		Kubelet(c, n),
		kubelet.Healthy(n.Kubelet),
		kubelet.EndChange(n.Kubelet),
	}
	if !n.NoProxy {
		steps = append(steps, Proxy(c, n))
	}
	return []plan.Task{{Name: "node", Steps: append(steps, Joined(component.Joined(n.Name)))}}
}

// Steady asks for those units that nothing else waits for: an API server must be ready, and a kubelet healthy.
func (Kubernetes) Steady(in component.Inputs) []step.Step {
	var units []string
	if in.IsControlPlane() {
		units = append(units, controllerManager+".service", scheduler+".service")
	}
	if in.ServiceProxy.Unit() != "" {
		units = append(units, proxy+".service")
	}
	if len(units) == 0 {
		return nil
	}
	return []step.Step{Steady(units)}
}

// Gates bind the roles of the certificates on control plane hosts.
func (Kubernetes) Gates(in component.Inputs) []plan.Task {
	if !in.IsControlPlane() {
		return nil
	}
	return []plan.Task{{Name: "administrators", Steps: []step.Step{Administrators(component.APIAnswers)}}}
}

// Programs are all.
func (Kubernetes) Programs(in component.Inputs) []step.Artifact { return in.Programs("kubernetes") }

// Kept are none: components write nothing that another version reads.
func (Kubernetes) Kept(component.Inputs) []string { return nil }

// EtcdClients is the API server's unit.
func (Kubernetes) EtcdClients(component.Inputs) []string { return []string{apiServer + ".service"} }

// Withdraw ends the API server's unit.
func (Kubernetes) Withdraw(component.Inputs) plan.Task {
	return plan.Task{Name: "withdraw", Steps: []step.Step{Withdraw()}}
}

// Halt ends the units.
func (Kubernetes) Halt(_ component.Inputs, id, done string, after ...string) plan.Task {
	return plan.Task{Name: "halt", Steps: []step.Step{Halt(component.RestoreDir, id, done, after...)}}
}

// Resume starts them.
func (Kubernetes) Resume(in component.Inputs, id, done string, after ...string) plan.Task {
	return plan.Task{Name: "resume", Steps: []step.Step{
		Resume(component.RestoreDir, id, after...),
		Ready(cluster(in), graph.Output[string]{Name: done}),
	}}
}

// Restart restarts the units.
func (Kubernetes) Restart(in component.Inputs, r component.Restart, etcd []step.Step) []step.Step {
	return Restart(cluster(in), node(in), r, etcd)
}

// Certificates are all.
func (Kubernetes) Certificates(in component.Inputs) []step.Step {
	var steps []step.Step
	if in.IsControlPlane() {
		steps = append(steps, Certificates(cluster(in), node(in)))
	}
	if in.IsNode() {
		steps = append(steps, NodeCertificates(cluster(in), node(in)))
	}
	return steps
}

// OtherCertificates are none.
func (Kubernetes) OtherCertificates(component.Inputs) []component.Certificate { return nil }

// Renew has nothing to renew.
func (Kubernetes) Renew(component.Inputs, []string, time.Time, ...string) []step.Step { return nil }

// Renewed waits for the host's API server, if it has one.
func (Kubernetes) Renewed(in component.Inputs, done graph.Output[string]) step.Step {
	if in.IsControlPlane() {
		return Ready(cluster(in), done)
	}
	return renewal.Done(done)
}

// ArePods does not hold: they are units.
func (Kubernetes) ArePods() bool { return false }

// JoinsByKubeadm is false: hosts join by what the bundle and the cluster's authority have for them.
func (Kubernetes) JoinsByKubeadm() bool { return false }

// MakesEtcdPods does not hold: etcd does so itself.
func (Kubernetes) MakesEtcdPods() bool { return false }

// Initialized is what the controller manager makes in each namespace.
func (Kubernetes) Initialized() string { return "kube-root-ca.crt" }

func cluster(in component.Inputs) Cluster {
	return Cluster{Name: in.Target.ClusterName, Spec: in.Cluster(), Etcd: in.Etcd.Client(in)}
}

func node(in component.Inputs) Node {
	n := NodeOf(&in.Target, in.Node())
	n.NoProxy = in.ServiceProxy.Unit() == ""
	return n
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package module is a strategic domain's part in a pipeline: tasks in order. It is here that a cluster's types decide which
// tasks do a domain's work.
package module

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/task"
)

// OS makes the operating system fit.
func OS(in component.Inputs) plan.Module {
	m := plan.Module{Name: "os", Tasks: []plan.Task{task.User(in), task.System(in)}}
	if in.IsControlPlane() && in.Target.Cluster.ControlPlaneEndpoint.Internal == spec.LoadBalancerKubeVIP {
		m.Tasks = append(m.Tasks, task.MovingAddress(in)) // before anything that could have it is started
	}
	return m
}

// Runtime installs the container runtime and fills it. It is the first of what a Node runs.
func Runtime(in component.Inputs) plan.Module {
	return plan.Module{Name: "runtime", Tasks: []plan.Task{task.Upgrade(in), in.Runtime.Install(in), task.CNI(in), in.Runtime.Load(in)}}
}

// BeforeEtcd is what must be there, or be known, before the host's etcd or its API server.
func BeforeEtcd(in component.Inputs) plan.Module {
	m := plan.Module{Name: "etcd"}
	switch {
	case !in.Target.Cluster.Etcd.IsStacked() && in.IsControlPlane():
		m.Tasks = []plan.Task{task.AwaitEtcd(in)}
	case in.Target.Cluster.Etcd.Type == spec.EtcdKubexm || in.IsBinary():
		m.Tasks = []plan.Task{task.EtcdData(in)}
	}
	return m
}

// Etcd runs the host's etcd as a unit, where that is how it runs here, and lets the API server reach it.
func Etcd(in component.Inputs) plan.Module {
	m := plan.Module{Name: "etcd"}
	if e := in.Target.Cluster.Etcd; e.Type == spec.EtcdKubexm && (e.IsStacked() || in.Target.Host.Role == spec.RoleEtcd) {
		m.Tasks = append(m.Tasks, task.Etcd(in))
	}
	// The way to a static pod comes after the kubelet.
	if in.IsControlPlane() && in.Target.Cluster.Etcd.Type != spec.EtcdKubeadm {
		m.Tasks = append(m.Tasks, task.EtcdClient(in))
	}
	return m
}

// EtcdCare keeps etcd's members and databases in order.
func EtcdCare(in component.Inputs) plan.Module {
	m := plan.Module{Name: "etcd"}
	if in.Target.Host.Role == spec.RoleEtcd || in.Target.Cluster.Etcd.IsStacked() {
		m.Tasks = []plan.Task{task.EtcdCare(in)}
	}
	if in.Target.Host.Role == spec.RoleEtcd {
		m.Tasks = append(m.Tasks, task.UserAfter(in))
	}
	return m
}

// ExternalEtcd checks an etcd that others run.
func ExternalEtcd(in component.Inputs) plan.Module {
	m := plan.Module{Name: "etcd"}
	if in.Target.Cluster.Etcd.Type == spec.EtcdExternal {
		m.Tasks = []plan.Task{task.ExternalEtcd(in)}
	}
	return m
}

// ControlPlane makes the host a part of the control plane.
func ControlPlane(in component.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	switch {
	case in.IsBinary():
		m.Tasks = append(m.Tasks, task.Components(in))
	default:
		m.Tasks = append(m.Tasks, task.Kubelet(in))
	}
	if in.Target.Cluster.ControlPlaneEndpoint.Internal == spec.LoadBalancerKubeVIP {
		m.Tasks = append(m.Tasks, task.KubeVIP(in))
	}
	switch {
	case in.IsBinary() && in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm:
		// etcd is a static pod: the kubelet comes first.
		m.Tasks = append(m.Tasks, task.NodeComponents(in), task.Etcd(in), task.EtcdClient(in), task.ControlPlaneComponents(in))
	case in.IsBinary():
		m.Tasks = append(m.Tasks, task.ControlPlaneComponents(in), task.NodeComponents(in))
	default:
		m.Tasks = append(m.Tasks, task.KubeadmControlPlane(in))
	}
	m.Tasks = append(m.Tasks, task.Installed(in), task.Upgraded(in), task.UserAfter(in))
	return m
}

// Worker joins the host as a worker.
func Worker(in component.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	if in.IsBinary() {
		m.Tasks = append(m.Tasks, task.Components(in))
	} else {
		m.Tasks = append(m.Tasks, task.Kubelet(in))
	}
	if in.Target.Cluster.ControlPlaneEndpoint.IsLocal() {
		m.Tasks = append(m.Tasks, task.LocalProxy(in))
	}
	if in.IsBinary() {
		m.Tasks = append(m.Tasks, task.NodeComponents(in))
	} else {
		m.Tasks = append(m.Tasks, task.KubeadmWorker(in))
	}
	m.Tasks = append(m.Tasks, task.Installed(in), task.Upgraded(in), task.UserAfter(in))
	return m
}

// LoadBalancer makes the host carry requests to the API servers.
func LoadBalancer(in component.Inputs) plan.Module {
	return plan.Module{Name: "loadbalancer", Tasks: []plan.Task{task.Proxy(in), task.VirtualAddress(in), task.UserAfter(in)}}
}

// API waits for the API server.
func API(in component.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.API(in)}}
}

// Administrators binds their roles, where kubeadm has not done so.
func Administrators(in component.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	if in.IsBinary() {
		m.Tasks = []plan.Task{task.Administrators(in)}
	}
	return m
}

// BootstrapToken makes a token to join with, where hosts join by one.
func BootstrapToken(in component.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	if !in.IsBinary() {
		m.Tasks = []plan.Task{task.BootstrapToken(in)}
	}
	return m
}

// KubeadmConfig tells the cluster what joins its control plane, where kubeadm asks for that.
func KubeadmConfig(in component.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	if !in.IsBinary() {
		m.Tasks = []plan.Task{task.KubeadmConfig(in)}
	}
	return m
}

// Network gives the cluster names and connects its pods.
func Network(in component.Inputs) plan.Module {
	m := plan.Module{Name: "network", Tasks: []plan.Task{task.DNS(in)}}
	if !in.IsBinary() {
		m.Tasks = append(m.Tasks, task.KubeProxy(in))
	}
	m.Tasks = append(m.Tasks, in.Network.Tasks(in)...)
	return m
}

// NodeReady waits until the host's Node is Ready. Where its programs were replaced, it is in use again after that.
func NodeReady(in component.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.Drain(in), task.Verify(in), task.NodeReady(in)}}
}

// Withdrawal ends the host's API server, whose etcd member is about to go.
func Withdrawal(in component.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.Withdraw(in)}}
}

// EtcdSnapshot saves a snapshot of etcd.
func EtcdSnapshot(in component.Inputs, asked time.Time) plan.Module {
	return plan.Module{Name: "etcd", Tasks: []plan.Task{task.SaveEtcd(in, asked)}}
}

// Renewable are the certificates on the host that can be renewed.
func Renewable(in component.Inputs) []component.Certificate { return task.Certificates(in) }

// Certificates makes certificates with these names anew, as was asked for.
func Certificates(in component.Inputs, names []string, asked time.Time, after ...string) plan.Module {
	return plan.Module{Name: "certificates", Tasks: []plan.Task{task.RenewCertificates(in, names, asked, after...)}}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package module is a strategic domain's part in a pipeline: tasks in order. It is here that a cluster's types decide which
// tasks do a domain's work.
package module

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/task"
)

// OS makes the operating system fit.
func OS(in task.Inputs) plan.Module {
	m := plan.Module{Name: "os", Tasks: []plan.Task{task.User(in), task.System(in)}}
	if in.Target.Host.Role == spec.RoleControlPlane && in.Target.Cluster.ControlPlaneEndpoint.Internal == spec.LoadBalancerKubeVIP {
		m.Tasks = append(m.Tasks, task.MovingAddress(in)) // before anything that could have it is started
	}
	return m
}

// Runtime installs the container runtime and fills it. It is the first of what a Node runs.
func Runtime(in task.Inputs) plan.Module {
	return plan.Module{Name: "runtime", Tasks: []plan.Task{task.Upgrade(in), task.Containerd(in), task.CNI(in), task.Images(in)}}
}

// BeforeEtcd is what must be there, or be known, before the host's etcd or its API server.
func BeforeEtcd(in task.Inputs) plan.Module {
	m := plan.Module{Name: "etcd"}
	switch {
	case !in.Target.Cluster.Etcd.IsStacked() && in.Target.Host.Role == spec.RoleControlPlane:
		m.Tasks = []plan.Task{task.AwaitEtcd(in)}
	case in.Target.Cluster.Etcd.Type == spec.EtcdKubexm || isBinary(in):
		m.Tasks = []plan.Task{task.EtcdData(in)}
	}
	return m
}

// Etcd runs the host's etcd as a unit, where that is how it runs here, and lets the API server reach it.
func Etcd(in task.Inputs) plan.Module {
	m := plan.Module{Name: "etcd"}
	if e := in.Target.Cluster.Etcd; e.Type == spec.EtcdKubexm && (e.IsStacked() || in.Target.Host.Role == spec.RoleEtcd) {
		m.Tasks = append(m.Tasks, task.Etcd(in))
	}
	// The way to a static pod comes after the kubelet.
	if in.Target.Host.Role == spec.RoleControlPlane && in.Target.Cluster.Etcd.Type != spec.EtcdKubeadm {
		m.Tasks = append(m.Tasks, task.EtcdClient(in))
	}
	return m
}

// EtcdCare keeps etcd's members and databases in order.
func EtcdCare(in task.Inputs) plan.Module {
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
func ExternalEtcd(in task.Inputs) plan.Module {
	m := plan.Module{Name: "etcd"}
	if in.Target.Cluster.Etcd.Type == spec.EtcdExternal {
		m.Tasks = []plan.Task{task.ExternalEtcd(in)}
	}
	return m
}

// ControlPlane makes the host a part of the control plane.
func ControlPlane(in task.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	switch {
	case isBinary(in):
		m.Tasks = append(m.Tasks, task.Components(in))
	default:
		m.Tasks = append(m.Tasks, task.Kubelet(in))
	}
	if in.Target.Cluster.ControlPlaneEndpoint.Internal == spec.LoadBalancerKubeVIP {
		m.Tasks = append(m.Tasks, task.KubeVIP(in))
	}
	switch {
	case isBinary(in) && in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm:
		// etcd is a static pod: the kubelet comes first.
		m.Tasks = append(m.Tasks, task.NodeComponents(in), task.Etcd(in), task.EtcdClient(in), task.ControlPlaneComponents(in))
	case isBinary(in):
		m.Tasks = append(m.Tasks, task.ControlPlaneComponents(in), task.NodeComponents(in))
	default:
		m.Tasks = append(m.Tasks, task.KubeadmControlPlane(in))
	}
	m.Tasks = append(m.Tasks, task.Installed(in), task.Upgraded(in), task.UserAfter(in))
	return m
}

// Worker joins the host as a worker.
func Worker(in task.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	if isBinary(in) {
		m.Tasks = append(m.Tasks, task.Components(in))
	} else {
		m.Tasks = append(m.Tasks, task.Kubelet(in))
	}
	if in.Target.Cluster.ControlPlaneEndpoint.IsLocal() {
		m.Tasks = append(m.Tasks, task.LocalProxy(in))
	}
	if isBinary(in) {
		m.Tasks = append(m.Tasks, task.NodeComponents(in))
	} else {
		m.Tasks = append(m.Tasks, task.KubeadmWorker(in))
	}
	m.Tasks = append(m.Tasks, task.Installed(in), task.Upgraded(in), task.UserAfter(in))
	return m
}

// LoadBalancer makes the host carry requests to the API servers.
func LoadBalancer(in task.Inputs) plan.Module {
	return plan.Module{Name: "loadbalancer", Tasks: []plan.Task{task.Proxy(in), task.VirtualAddress(in), task.UserAfter(in)}}
}

// API waits for the API server.
func API(in task.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.API(in)}}
}

// Administrators binds their roles, where kubeadm has not done so.
func Administrators(in task.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	if isBinary(in) {
		m.Tasks = []plan.Task{task.Administrators(in)}
	}
	return m
}

// BootstrapToken makes a token to join with, where hosts join by one.
func BootstrapToken(in task.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	if !isBinary(in) {
		m.Tasks = []plan.Task{task.BootstrapToken(in)}
	}
	return m
}

// KubeadmConfig tells the cluster what joins its control plane, where kubeadm asks for that.
func KubeadmConfig(in task.Inputs) plan.Module {
	m := plan.Module{Name: "kubernetes"}
	if !isBinary(in) {
		m.Tasks = []plan.Task{task.KubeadmConfig(in)}
	}
	return m
}

// Network gives the cluster names and connects its pods.
func Network(in task.Inputs) plan.Module {
	m := plan.Module{Name: "network", Tasks: []plan.Task{task.DNS(in)}}
	if !isBinary(in) {
		m.Tasks = append(m.Tasks, task.KubeProxy(in))
	}
	m.Tasks = append(m.Tasks, task.Flannel(in))
	return m
}

// NodeReady waits until the host's Node is Ready. Where its programs were replaced, it is in use again after that.
func NodeReady(in task.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.Drain(in), task.Verify(in), task.NodeReady(in)}}
}

func isBinary(in task.Inputs) bool { return in.Target.Cluster.Kubernetes.Type == spec.KubernetesKubexm }

// Withdrawal ends the host's API server, whose etcd member is about to go.
func Withdrawal(in task.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.Withdraw(in)}}
}

// EtcdSnapshot saves a snapshot of etcd.
func EtcdSnapshot(in task.Inputs, asked time.Time) plan.Module {
	return plan.Module{Name: "etcd", Tasks: []plan.Task{task.SaveEtcd(in, asked)}}
}

// Certificates makes certificates with these names anew, as was asked for.
func Certificates(in task.Inputs, names []string, asked time.Time, after ...string) plan.Module {
	return plan.Module{Name: "certificates", Tasks: []plan.Task{task.RenewCertificates(in, names, asked, after...)}}
}

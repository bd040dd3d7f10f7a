// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package module is a strategic domain's part in a pipeline: tasks in order. It asks what fills the cluster's slots for those that do the
// domain's work.
package module

import (
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/task"
)

// OS makes the operating system fit.
func OS(in component.Inputs) plan.Module {
	m := plan.Module{Name: "os", Tasks: []plan.Task{task.User(in), task.System(in)}}
	if address := in.Internal.VirtualAddress; in.IsControlPlane() && address != nil {
		m.Tasks = append(m.Tasks, address.Claim(in)...)
	}
	return m
}

// Runtime installs the container runtime and fills it. It is the first of what a Node runs.
func Runtime(in component.Inputs) plan.Module {
	return plan.Module{Name: "runtime", Tasks: []plan.Task{task.Upgrade(in), in.Runtime.Install(in), task.CNI(in), in.Runtime.Load(in)}}
}

// BeforeEtcd is what must be there, or be known, before the host's etcd or its API server.
func BeforeEtcd(in component.Inputs) plan.Module {
	return plan.Module{Name: "etcd", Tasks: in.Etcd.Prepare(in)}
}

// Etcd runs the host's member, and lets its API server reach etcd. Those of a member that is a static pod come with the kubelet.
func Etcd(in component.Inputs) plan.Module {
	m := plan.Module{Name: "etcd"}
	if !in.Etcd.IsPod() {
		m.Tasks = in.Etcd.Tasks(in)
	}
	return m
}

// EtcdMaintenance keeps etcd's members and databases in order.
func EtcdMaintenance(in component.Inputs) plan.Module {
	m := plan.Module{Name: "etcd", Tasks: in.Etcd.Care(in)}
	if in.Target.Host.Role == spec.RoleEtcd {
		m.Tasks = append(m.Tasks, task.UserAfter(in))
	}
	return m
}

// EtcdGates ask whether etcd is fit to be used.
func EtcdGates(in component.Inputs) plan.Module {
	return plan.Module{Name: "etcd", Tasks: in.Etcd.Gates(in)}
}

// Programs puts those of a control plane host there, before its etcd: where that is restarted, what uses it is restarted with it
// (component.Kubernetes.EtcdClients), and is what it is to be then.
func Programs(in component.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{in.Kubernetes.Install(in)}}
}

// ControlPlane makes the host a part of the control plane. It comes after Programs.
func ControlPlane(in component.Inputs) plan.Module {
	var between []plan.Task
	if address := in.Internal.VirtualAddress; address != nil {
		between = []plan.Task{address.Hold(in)}
	}
	return node(in, slices.Concat(between, in.Kubernetes.ControlPlane(in)))
}

// Worker joins the host as a worker.
func Worker(in component.Inputs) plan.Module {
	tasks := []plan.Task{in.Kubernetes.Install(in)}
	if proxy := in.Internal.Proxy; proxy != nil {
		tasks = append(tasks, proxy.Local(in))
	}
	return node(in, append(tasks, in.Kubernetes.Worker(in)...))
}

// node makes the host a Node by these tasks.
func node(in component.Inputs, tasks []plan.Task) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: append(tasks, task.Installed(in), task.Upgraded(in), task.UserAfter(in))}
}

// LoadBalancer makes the host carry requests to the API servers.
func LoadBalancer(in component.Inputs) plan.Module {
	m := plan.Module{Name: "loadbalancer"}
	if proxy := in.External.Proxy; proxy != nil {
		m.Tasks = append(m.Tasks, proxy.Serve(in))
	}
	if address := in.External.VirtualAddress; address != nil {
		m.Tasks = append(slices.Concat(m.Tasks, address.Claim(in)), address.Hold(in))
	}
	m.Tasks = append(m.Tasks, task.UserAfter(in))
	return m
}

// API waits for the API server.
func API(in component.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.API(in)}}
}

// KubernetesGates tell the cluster what it must know because of the host: by what it joins, or who may administer.
func KubernetesGates(in component.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: in.Kubernetes.Gates(in)}
}

// Network gives the cluster names and connects its pods.
func Network(in component.Inputs) plan.Module {
	return plan.Module{Name: "network", Tasks: slices.Concat(in.DNS.Tasks(in), in.ServiceProxy.Tasks(in), in.Network.Tasks(in))}
}

// Addons installs what runs in the cluster beside what makes it one.
func Addons(in component.Inputs) plan.Module {
	return plan.Module{Name: "addons", Tasks: in.Addons.Tasks(in)}
}

// NodeReady waits until the host's Node is Ready. Where its programs were replaced, it is in use again after that.
func NodeReady(in component.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.Drain(in), task.Verify(in), task.NodeReady(in)}}
}

// Withdrawal ends the host's API server, whose etcd member is about to go.
func Withdrawal(in component.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{in.Kubernetes.Withdraw(in)}}
}

// EtcdSnapshot saves a snapshot of etcd.
func EtcdSnapshot(in component.Inputs, asked time.Time) plan.Module {
	return plan.Module{Name: "etcd", Tasks: []plan.Task{in.Etcd.SaveAsked(in, asked)}}
}

// Renewable are the certificates on the host that can be renewed.
func Renewable(in component.Inputs) []component.Certificate { return task.Certificates(in) }

// Certificates makes certificates with these names anew, as was asked for.
func Certificates(in component.Inputs, names []string, asked time.Time, after ...string) plan.Module {
	return plan.Module{Name: "certificates", Tasks: []plan.Task{task.RenewCertificates(in, names, asked, after...)}}
}

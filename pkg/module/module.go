// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package module is a strategic domain's part in a pipeline: tasks in order.
package module

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/task"
)

// OS makes the operating system fit.
func OS(in task.Inputs) plan.Module {
	return plan.Module{Name: "os", Tasks: []plan.Task{task.User(in), task.System(in)}}
}

// Runtime installs the container runtime and fills it.
func Runtime(in task.Inputs) plan.Module {
	return plan.Module{Name: "runtime", Tasks: []plan.Task{task.Containerd(in), task.CNI(in), task.Images(in)}}
}

// ControlPlane starts the control plane on its first host.
func ControlPlane(in task.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.Kubelet(in), task.Init(in), task.UserAfter(in)}}
}

// Worker joins the host as a worker.
func Worker(in task.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.Kubelet(in), task.Join(in), task.UserAfter(in)}}
}

// API waits for the API server.
func API(in task.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.API(in)}}
}

// BootstrapToken makes a token to join with.
func BootstrapToken(in task.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.BootstrapToken(in)}}
}

// Network gives the cluster names and connects its pods.
func Network(in task.Inputs) plan.Module {
	return plan.Module{Name: "network", Tasks: []plan.Task{task.DNS(in), task.Flannel(in)}}
}

// NodeReady waits until the host's Node is Ready.
func NodeReady(in task.Inputs) plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.NodeReady(in)}}
}

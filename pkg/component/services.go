// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// DNS is the slot of what gives Services their names, and asks others for those outside of the cluster.
type DNS interface {
	// Needs are what it takes from the bundle for a host.
	Needs(in Inputs) Needs
	// Tasks deploy it when the API server answers (APIAnswers).
	Tasks(in Inputs) []plan.Task
}

// ServiceProxy is the slot of what leads connections to Services to their Pods, on each Node.
type ServiceProxy interface {
	// Needs are what it takes from the bundle for a host.
	Needs(in Inputs) Needs
	// Tasks deploy it when the API server answers (APIAnswers). One that is a unit of each Node has none.
	Tasks(in Inputs) []plan.Task
	// Unit is what it is called as a unit of each Node, "" where it is none.
	Unit() string
	// DaemonSets in kube-system are those whose Pods run what the Node's host has, and are to run what replaces it.
	DaemonSets() []string
	// Packages of the operating system are those that it takes beside it on a Node.
	Packages(in Inputs) []string
	// Modules are what it takes of the kernel.
	Modules(in Inputs) []string
	// MinKernel is the oldest kernel that it works with on a Node, "" where that is whatever Kubernetes takes.
	MinKernel(in Inputs) string
	// Sysctls are parameters of the kernel that it would set itself, so that a reset restores them: those that mean something before it
	// runs, and those that do only while it does.
	Sysctls(in Inputs) (lasting, momentary []spec.Sysctl)
	// Residue is what it leaves on a Node.
	Residue() step.Residue
}

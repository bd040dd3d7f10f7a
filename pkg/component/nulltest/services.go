// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package nulltest

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// DNS names nothing.
type DNS struct{}

var _ component.DNS = DNS{}

// Needs nothing.
func (DNS) Needs(component.Inputs) component.Needs { return component.Needs{} }

// Tasks are one.
func (DNS) Tasks(component.Inputs) []plan.Task { return []plan.Task{apply("null-dns")} }

// ServiceProxy leads nowhere.
type ServiceProxy struct{}

var _ component.ServiceProxy = ServiceProxy{}

// Needs nothing.
func (ServiceProxy) Needs(component.Inputs) component.Needs { return component.Needs{} }

// Tasks are one.
func (ServiceProxy) Tasks(component.Inputs) []plan.Task {
	return []plan.Task{apply("null-service-proxy")}
}

// Unit is none.
func (ServiceProxy) Unit() string { return "" }

// DaemonSets are one.
func (ServiceProxy) DaemonSets() []string { return []string{"null-service-proxy"} }

// Packages are one.
func (ServiceProxy) Packages(component.Inputs) []string { return []string{"null"} }

// Modules are one.
func (ServiceProxy) Modules(component.Inputs) []string { return []string{"null"} }

// MinKernel is any.
func (ServiceProxy) MinKernel(component.Inputs) string { return "" }

// Sysctls are one of each.
func (ServiceProxy) Sysctls(component.Inputs) (lasting, momentary []spec.Sysctl) {
	return []spec.Sysctl{{Name: "null.lasting", Value: "1"}}, []spec.Sysctl{{Name: "null.momentary", Value: "1"}}
}

// Residue is a directory and a set.
func (ServiceProxy) Residue() step.Residue {
	return step.Residue{Paths: []string{"/run/null-service-proxy"}, Sets: []string{"NULL-"}}
}

func apply(name string) plan.Task {
	return plan.Task{Name: name, Steps: []step.Step{step.New(step.Meta{Name: "null/" + name, Description: "deploy " + name}, step.Apply{
		Title: name, Manifest: step.Literal("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n"),
		After: []string{component.APIAnswers.Name},
	})}}
}

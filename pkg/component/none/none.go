// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package none fills slots with nothing: what belongs there, users install themselves.
package none

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Network is whatever users connect pods by. Until they have, no Node is Ready.
type Network struct{}

var _ component.Network = Network{}

// Needs nothing.
func (Network) Needs(component.Inputs) component.Needs { return component.Needs{} }

// Tasks are none.
func (Network) Tasks(component.Inputs) []plan.Task { return nil }

// Agent is nobody that is known of.
func (Network) Agent() (string, string) { return "", "" }

// Release is none that is known of.
func (Network) Release() (string, string) { return "", "" }

// PodMTU is nothing to say: with a configuration of pods' interfaces, a Node would be Ready without a network.
func (Network) PodMTU(spec.Network) int32 { return 0 }

// ByDefaultRoute is not known.
func (Network) ByDefaultRoute(spec.Network) bool { return false }

// Residue is nothing that is known of.
func (Network) Residue() step.Residue { return step.Residue{} }

// DNS is whatever users give Services names by.
type DNS struct{}

var _ component.DNS = DNS{}

// Needs nothing.
func (DNS) Needs(component.Inputs) component.Needs { return component.Needs{} }

// Tasks are none.
func (DNS) Tasks(component.Inputs) []plan.Task { return nil }

// ServiceProxy is whatever users lead connections to Services by.
type ServiceProxy struct{}

var _ component.ServiceProxy = ServiceProxy{}

// Needs nothing.
func (ServiceProxy) Needs(component.Inputs) component.Needs { return component.Needs{} }

// Tasks are none.
func (ServiceProxy) Tasks(component.Inputs) []plan.Task { return nil }

// DaemonSets are none.
func (ServiceProxy) DaemonSets() []string { return nil }

// Unit is none.
func (ServiceProxy) Unit() string { return "" }

// Packages are none.
func (ServiceProxy) Packages(component.Inputs) []string { return nil }

// Modules are none.
func (ServiceProxy) Modules(component.Inputs) []string { return nil }

// MinKernel is nothing that is known of.
func (ServiceProxy) MinKernel(component.Inputs) string { return "" }

// Sysctls are none.
func (ServiceProxy) Sysctls(component.Inputs) (lasting, momentary []spec.Sysctl) { return nil, nil }

// Residue is nothing that is known of.
func (ServiceProxy) Residue() step.Residue { return step.Residue{} }

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nulltest has components that do nothing, one for each slot but Kubernetes: what the house asks of a component, on one screen.
package nulltest

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Network connects no pods.
type Network struct{}

var _ component.Network = Network{}

// Needs an image that every bundle has.
func (Network) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	return component.Needs{Images: component.ImagesNamed("pause")}
}

// Tasks are one, with one step.
func (Network) Tasks(in component.Inputs) []plan.Task {
	deploy := step.New(step.Meta{
		Name: "null/deploy", Description: "deploy the null network", Makes: []string{component.NetworkDeployed.Name},
	}, step.Apply{
		Title: "null of " + in.ImageRef("pause"), Manifest: step.Literal("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: null-network\n"),
		After: []string{component.APIAnswers.Name},
	})
	return []plan.Task{{Name: "null", Steps: []step.Step{deploy}}}
}

// Agent is a DaemonSet.
func (Network) Agent() (string, string) { return "null-network", "null" }

// Release is none.
func (Network) Release() (string, string) { return "", "" }

// PodMTU is that of an Ethernet.
func (Network) PodMTU(spec.Network) int32 { return 1500 }

// ByDefaultRoute is not so.
func (Network) ByDefaultRoute(spec.Network) bool { return false }

// Residue is one of each kind.
func (Network) Residue() step.Residue {
	return step.Residue{Paths: []string{"/run/null"}, Links: []string{"null0"}, Chains: []string{"NULL-"}, Tables: []string{"ip null"}}
}

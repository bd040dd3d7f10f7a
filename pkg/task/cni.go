// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/cni"
)

// CNI installs the standard network plugins.
func CNI(in component.Inputs) plan.Task {
	return plan.Task{Name: "cni", Steps: []step.Step{cni.Plugins(in.Programs("cni-plugins"))}}
}

// CNINeeds are the standard network plugins.
func CNINeeds(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	return component.Needs{Programs: []component.Programs{{Component: "cni-plugins"}}}
}

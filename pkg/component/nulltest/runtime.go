// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package nulltest

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// Runtime runs no containers.
type Runtime struct{}

var _ component.Runtime = Runtime{}

// Needs nothing.
func (Runtime) Needs(component.Inputs) component.Needs { return component.Needs{} }

// Install declares what pods will leave.
func (Runtime) Install(in component.Inputs) plan.Task {
	claim := step.New(step.Meta{Name: "null/claim", Description: "record what pods will fill"},
		step.Claim{Paths: append([]string{in.Target.Cluster.ContainerRuntime.DataDir}, in.Residue().Paths...)})
	return plan.Task{Name: "null-runtime", Steps: []step.Step{claim}}
}

// Load names the images that it does not import.
func (Runtime) Load(in component.Inputs) plan.Task {
	list := ""
	for _, i := range in.Images {
		list += i.Ref + "\n"
	}
	load := step.New(step.Meta{Name: "null/images", Description: "list images"},
		step.File{Path: "/etc/null/images", Mode: 0o644, Content: step.Literal(list)})
	return plan.Task{Name: "null-images", Steps: []step.Step{load}}
}

// Programs are none.
func (Runtime) Programs(component.Inputs) []step.Artifact { return nil }

// Endpoint is a socket.
func (Runtime) Endpoint() kubelet.Runtime {
	return kubelet.Runtime{Socket: "unix:///run/null.sock", Unit: "null.service", Name: "null", Enter: "enter() { return 1; }\n"}
}

// Foreign is one that nobody has.
func (Runtime) Foreign() component.Foreign {
	return component.Foreign{Name: "null", Unit: "null.service", Process: "null", Socket: "/run/null.sock", Remove: "rm", RemoveBoth: "rm"}
}

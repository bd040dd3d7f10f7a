// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package nulltest

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Proxy carries no requests.
type Proxy struct{}

var _ component.Proxy = Proxy{}

// Needs an image that every bundle has.
func (Proxy) Needs(component.Inputs) component.Needs {
	return component.Needs{Images: component.ImagesNamed("pause")}
}

// Serve writes a file on a load balancer host.
func (p Proxy) Serve(in component.Inputs) plan.Task { return p.task(in, "null/serve") }

// Local writes a file on a worker.
func (p Proxy) Local(in component.Inputs) plan.Task { return p.task(in, "null/local") }

func (Proxy) task(in component.Inputs, name string) plan.Task {
	text := in.ImageRef("pause") + "\n"
	return plan.Task{Name: "null-proxy", Steps: []step.Step{step.New(step.Meta{Name: name, Description: "carry no requests"},
		step.File{Path: "/etc/null/proxy", Mode: 0o644, Content: step.Literal(text)})}}
}

// Service is none that there is.
func (Proxy) Service() string { return "null-proxy.service" }

// Check always succeeds.
func (Proxy) Check() string { return "/bin/true" }

// VirtualAddress holds no address.
type VirtualAddress struct{}

var _ component.VirtualAddress = VirtualAddress{}

// Needs nothing.
func (VirtualAddress) Needs(component.Inputs) component.Needs { return component.Needs{} }

// Claim declares a file.
func (VirtualAddress) Claim(component.Inputs) []plan.Task {
	claim := step.New(step.Meta{Name: "null/claim-address", Description: "record what may be left"}, step.Claim{Paths: []string{"/run/null-address"}})
	return []plan.Task{{Name: "null-address", Steps: []step.Step{claim}}}
}

// Certificates are none.
func (VirtualAddress) Certificates(component.Inputs) []step.Step { return nil }

// Service is none.
func (VirtualAddress) Service() string { return "" }

// Hold writes the address that it does not hold.
func (VirtualAddress) Hold(in component.Inputs) plan.Task {
	hold := step.New(step.Meta{Name: "null/hold", Description: "hold no address"}, step.File{
		Path: "/etc/null/address", Mode: 0o644, Content: step.Literal(in.Target.Cluster.ControlPlaneEndpoint.Address + "\n"),
	})
	return plan.Task{Name: "null-address", Steps: []step.Step{hold}}
}

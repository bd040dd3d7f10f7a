// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubevip lets a virtual address move between the control plane's hosts by kube-vip.
package kubevip

import (
	"cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// name is that of the component and of its image in the catalogue, and of its tasks.
const name = "kube-vip"

// VirtualAddress is kube-vip.
type VirtualAddress struct{}

var _ component.VirtualAddress = VirtualAddress{}

// Needs are the image, unless hosts are to pull another.
func (VirtualAddress) Needs(in component.Inputs) component.Needs {
	if in.Target.Cluster.LoadBalancer.KubeVIP.Image != "" {
		return component.Needs{}
	}
	return component.Needs{
		Optional: component.Optional{Component: name, Or: "set loadBalancer.kubeVIP.image (of config.yaml, controlPlaneEndpoint.kubeVIP.image) to one that hosts can pull"},
		Images:   component.ImagesNamed(name),
	}
}

// Claim declares that the host may get the address.
func (VirtualAddress) Claim(in component.Inputs) []plan.Task {
	return []plan.Task{{Name: name, Steps: []step.Step{Claim(settings(in))}}}
}

// Hold runs kube-vip as a static pod.
func (VirtualAddress) Hold(in component.Inputs) plan.Task {
	s := settings(in)
	return plan.Task{Name: name, Steps: []step.Step{Credentials(s), Pod(s)}}
}

// Service is none.
func (VirtualAddress) Service() string { return "" }

// Certificates are those of its client.
func (VirtualAddress) Certificates(in component.Inputs) []step.Step {
	return []step.Step{Credentials(settings(in))}
}

func settings(in component.Inputs) Settings {
	e, set := in.Target.Cluster.ControlPlaneEndpoint, in.Target.Cluster.LoadBalancer.KubeVIP
	return Settings{
		Host: in.Target.Host.Name, VIP: e.Address, Interface: cmp.Or(set.Interface, in.System.DefaultInterface), Port: e.Port,
		Image: cmp.Or(set.Image, in.ImageRef(name)), Certificates: in.Target.Cluster.Certificates,
	}
}

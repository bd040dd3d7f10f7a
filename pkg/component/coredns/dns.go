// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// image is that in the catalogue.
const image = "coredns"

// DNS is CoreDNS.
type DNS struct{}

var _ component.DNS = DNS{}

// Needs are the image.
func (DNS) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	return component.Needs{Images: component.ImagesNamed(image)}
}

// Tasks deploy it. The cluster has one Corefile, which each control plane host applies, and what they know of name servers may differ: one
// that knows none does not take away what others have found, unless the control plane begins there.
func (DNS) Tasks(in component.Inputs) []plan.Task {
	forwards := len(component.Forwards(in.System)) > 0
	declared := len(in.Target.Cluster.DNS.CoreDNS.UpstreamServers) > 0
	return []plan.Task{{Name: "dns", Steps: []step.Step{Deploy(Settings{
		DNS: in.Target.Cluster.DNS, Image: in.ImageRef(image), Addresses: in.Target.Cluster.Network.DNSAddresses(),
		HostForwards: forwards, KeepsCorefile: !forwards && !declared && !in.First(), After: component.APIAnswers,
	})}}}
}

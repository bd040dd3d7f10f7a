// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flannel connects pods by flannel, which its own Helm chart installs.
package flannel

import (
	_ "embed"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Names in the catalogue, and in the cluster.
const (
	chart       = "flannel"
	image       = "flannel"
	pluginImage = "flannel-cni-plugin"

	namespace = "kube-flannel"
	daemonSet = "kube-flannel-ds"

	releaseName = "flannel"
)

//go:embed routes.sh
var removeRoutes string

// Network is flannel.
type Network struct{}

var _ component.Network = Network{}

// Needs are the images, and on control plane hosts the chart.
func (Network) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	n := component.Needs{Images: component.ImagesNamed(image, pluginImage)}
	if in.IsControlPlane() {
		n.Charts = []string{chart}
	}
	return n
}

// Tasks install the release.
func (Network) Tasks(in component.Inputs) []plan.Task {
	return []plan.Task{{Name: "flannel", Steps: []step.Step{
		release(in.Target.Cluster.Network, in.Chart(chart), in.ImageRef(image), in.ImageRef(pluginImage)),
	}}}
}

// Agent is the DaemonSet of flanneld.
func (Network) Agent() (string, string) { return namespace, daemonSet }

// Release is that of flannel's own chart.
func (Network) Release() (string, string) { return namespace, releaseName }

// PodMTU is what is set, or 1500 bytes of an Ethernet, less what VXLAN puts around a packet on its way over IPv6.
func (Network) PodMTU(n spec.Network) int32 {
	const ethernet, vxlan = 1500, 70
	switch f := n.Flannel; {
	case f.MTU != 0:
		return f.MTU
	case f.Backend == spec.FlannelVXLAN:
		return ethernet - vxlan
	}
	return ethernet
}

// ByDefaultRoute is so where no networks are declared in which hosts reach each other: see release.
func (Network) ByDefaultRoute(n spec.Network) bool { return len(n.HostCIDRs) == 0 }

// Residue is of flanneld, and of the plugins that it hands pods to.
func (Network) Residue() step.Residue {
	return step.Residue{
		Paths:  []string{"/run/flannel"},
		Links:  []string{"flannel.1", "flannel-v6.1"},
		Chains: []string{"FLANNEL-"},
		Tables: []string{"ip flannel-ipv4", "ip6 flannel-ipv6"},
		Script: removeRoutes,
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package calico connects pods by Calico in VXLAN, which its own Helm chart installs, and has NetworkPolicies kept to.
package calico

import (
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Names in the catalogue, and in the cluster.
const (
	chart            = "calico"
	nodeImage        = "calico-node"
	pluginImage      = "calico-cni"
	controllersImage = "calico-kube-controllers"

	namespace = metav1.NamespaceSystem
	daemonSet = "calico-node"

	releaseName = "calico"
)

//go:embed remove.sh
var remove string

// Network is Calico.
type Network struct{}

var _ component.Network = Network{}

// Needs are the images, and on control plane hosts the chart. Which Node the controllers run on is the scheduler's choice.
func (Network) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	n := component.Needs{
		Optional: component.Optional{Component: chart}, Images: component.ImagesNamed(nodeImage, pluginImage, controllersImage),
	}
	if in.IsControlPlane() {
		n.Charts = []string{chart}
	}
	return n
}

// Tasks install the release, and then declare where pods get addresses from: kinds of objects come with the release.
func (Network) Tasks(in component.Inputs) []plan.Task {
	n := in.Target.Cluster.Network
	return []plan.Task{{Name: "calico", Steps: []step.Step{
		release(n, in.Chart(chart), in.ImageRef(nodeImage), in.ImageRef(pluginImage), in.ImageRef(controllersImage)),
		pools(n),
	}}}
}

// Agent is the DaemonSet of calico-node.
func (Network) Agent() (string, string) { return namespace, daemonSet }

// Release is that of calico's own chart.
func (Network) Release() (string, string) { return namespace, releaseName }

// PodMTU is what is set, or 1500 bytes of an Ethernet, less what VXLAN puts around a packet on its way over IPv4.
func (Network) PodMTU(n spec.Network) int32 {
	const ethernet, vxlan = 1500, 50
	if mtu := n.Calico.VethMTU; mtu != 0 {
		return mtu
	}
	return ethernet - vxlan
}

// ByDefaultRoute is not so: they leave by the interface of the Node's address.
func (Network) ByDefaultRoute(spec.Network) bool { return false }

// Residue is of Felix, of the plugins, and of the Pod's volumes. What Felix has in the packet filter goes by its own script, because sets
// of addresses outlive the rules that use them.
func (Network) Residue() step.Residue {
	return step.Residue{
		Paths: []string{
			"/var/lib/calico", "/var/log/calico", "/run/calico", "/run/nodeagent",
		},
		Links:  []string{"vxlan.calico"},
		Script: remove,
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Node is a host as its kubelet has it.
type Node struct {
	Name, Address, ProviderID string
	// SecondAddress is the Node's of the other family in a dual stack cluster, "" elsewhere.
	SecondAddress string
	// Addresses are all that the host has.
	Addresses    []string
	ControlPlane bool
	Kubelet      spec.Kubelet
	Labels       map[string]string
	Taints       []corev1.Taint
	// ResolvConf is the file of name servers for pods; "" for the host's own.
	ResolvConf string
	// CgroupDriver is systemd or cgroupfs; CgroupVersion 1 or 2.
	CgroupDriver  string
	CgroupVersion int32
	Runtime       Runtime
	Swap          bool
}

// NodeOf is the Node that a target's host is to be; resolvConf is "" for the host's own.
func NodeOf(t *spec.Target, runtime Runtime, resolvConf string) Node {
	n := Node{
		Name: t.Host.Name, Address: t.Host.NodeAddress(), ProviderID: t.Host.ProviderID, Addresses: t.Host.Addresses(),
		ControlPlane: t.Host.Role == spec.RoleControlPlane, Kubelet: t.Kubelet(), Labels: t.Node.NodeLabels, Runtime: runtime,
		ResolvConf: resolvConf, Swap: t.System().Swap == spec.PolicyKeep,
	}
	if n.ControlPlane {
		n.Taints = append(n.Taints, corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule})
	}
	n.Taints = append(n.Taints, t.Node.NodeTaints...)
	return n
}

// ServingNames are the names and addresses of the kubelet's serving certificate: those that the Node has, at which API servers ask for it.
// The host's other addresses are nobody's way to the kubelet, and the cluster's authority is to vouch for none of them. Nor does it for a
// second address that a worker has found at itself, if that is the API's.
func (n Node) ServingNames(c *spec.Cluster) []string {
	names := []string{n.Name, n.Address}
	found := !n.ControlPlane && !slices.Contains(n.Addresses, n.SecondAddress)
	if n.SecondAddress == "" || found && isAPI(c, n.SecondAddress) {
		return names
	}
	return append(names, n.SecondAddress)
}

// isAPI reports whether the API is reached at an address, however that is written.
func isAPI(c *spec.Cluster, address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(append(c.Network.APIAddresses(), c.ControlPlaneEndpoint.Address), func(of string) bool {
		other, err := netip.ParseAddr(of)
		return err == nil && other.Unmap() == ip.Unmap()
	})
}

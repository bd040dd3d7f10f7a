// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// network: the host has the address that others are told, and is in none of the cluster's own networks.
func network(r *report) {
	node, err := netip.ParseAddr(r.t.Host.NodeAddress())
	if own := addresses(r.f.System.Addresses); err == nil && len(own) > 0 && !slices.Contains(own, node.Unmap()) {
		r.error(fmt.Sprintf("none of the host's interfaces has its address %s; they have %s", node, strings.Join(r.f.System.Addresses, ", ")),
			"give the address of an interface as the first of internalAddresses")
	}
	if r.ours() {
		return // the networks of pods are there
	}
	for _, n := range []struct {
		what, field string
		cidrs       []string
	}{
		{"pods", "network.podCIDRs", r.t.Cluster.Network.PodCIDRs},
		{"services", "network.serviceCIDRs", r.t.Cluster.Network.ServiceCIDRs},
	} {
		for _, cidr := range n.cidrs {
			if taken := overlapping(cidr, r.f.System.Addresses); taken != "" {
				r.error(fmt.Sprintf("an interface of the host is in the network %s, which overlaps the network of %s %s", taken, n.what, cidr),
					"choose another network in "+n.field)
			}
		}
	}
}

// overlapping is the first of the networks that overlaps cidr, or "".
func overlapping(cidr string, networks []string) string {
	want, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	for _, text := range networks {
		if have, err := netip.ParsePrefix(text); err == nil && have.Masked().Overlaps(want) {
			return have.Masked().String()
		}
	}
	return ""
}

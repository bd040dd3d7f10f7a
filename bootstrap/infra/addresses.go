// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"net/netip"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// maxAddresses is how many addresses of a host are kept, as the API takes them.
const maxAddresses = 16

// usable are the addresses, each once, at which others may reach a host. What is no IP address, with or without the length of a prefix, is
// left out, and so are those of a loopback, a link or many hosts.
func usable(addresses []string) []string {
	var found []string
	seen := map[netip.Addr]bool{}
	for _, a := range addresses {
		ip, err := netip.ParseAddr(a)
		if prefix, prefixErr := netip.ParsePrefix(a); prefixErr == nil {
			ip, err = prefix.Addr(), nil
		}
		ip = ip.Unmap().WithZone("")
		if err != nil || !ip.IsGlobalUnicast() || seen[ip] {
			continue
		}
		seen[ip] = true
		found = append(found, ip.String())
	}
	return found
}

// internal are the usable ones of the addresses as a Host has them.
func internal(addresses []string) []string {
	found := usable(addresses)
	return found[:min(len(found), maxAddresses)]
}

// candidates are the usable addresses of the groups, the likeliest group first, and IPv4 before IPv6 in each.
func candidates(groups ...[]string) []string {
	var all []string
	for _, group := range groups {
		group = usable(group)
		slices.SortStableFunc(group, func(a, b string) int { return order(a) - order(b) })
		all = append(all, group...)
	}
	return internal(all)
}

func order(address string) int {
	if spec.FamilyOf(address) == spec.IPv4 {
		return 0
	}
	return 1
}

// ofType are the addresses of a type.
func ofType(addresses clusterv1.MachineAddresses, wanted clusterv1.MachineAddressType) []string {
	var found []string
	for _, a := range addresses {
		if a.Type == wanted {
			found = append(found, a.Address)
		}
	}
	return found
}

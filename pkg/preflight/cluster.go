// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const machineID = "/etc/machine-id"

// identityQuery asks for what tells machines apart: see machine-id(5).
func identityQuery() host.Query {
	return host.Query{Paths: []host.PathQuery{{Path: machineID, Content: true}}}
}

func checkCluster(targets []spec.Target, facts map[string]*host.Facts) []Problem {
	var problems []Problem
	add := func(t spec.Target, check string, s Severity, cause, remedy string) {
		problems = append(problems, Problem{Host: t.Host.Name, Check: check, Severity: s, Cause: cause, Remedy: remedy})
	}
	for i, t := range targets {
		f := facts[t.Host.Name]
		if f == nil {
			continue
		}
		for _, other := range targets[:i] {
			of := facts[other.Host.Name]
			if of == nil {
				continue
			}
			if same(f, of) {
				add(t, "identity", Error, "it is the same machine as "+other.Host.Name, "remove one of the two, or correct its address")
				continue
			}
			if id := identity(f); id != "" && id == identity(of) {
				add(t, "identity", Error, fmt.Sprintf("it has the same /etc/machine-id as %s: network devices of both get the same hardware address", other.Host.Name),
					"on one of them, run rm /etc/machine-id && systemd-machine-id-setup, and restart it")
			}
			if a, err := netip.ParseAddr(t.Host.NodeAddress()); err == nil && slices.Contains(addresses(of.System.Addresses), a) {
				add(t, "network", Error, fmt.Sprintf("its address %s is an address of %s too", a, other.Host.Name), "give each host an address of its own")
			}
		}
	}
	return problems
}

// identity is the machine's ID, or "" where it has none.
func identity(f *host.Facts) string {
	return strings.TrimSpace(string(f.Paths[machineID].Content))
}

// same reports whether two names lead to one machine: no two have one ID, name and addresses.
func same(a, b *host.Facts) bool {
	return identity(a) != "" && identity(a) == identity(b) && a.System.Hostname == b.System.Hostname &&
		len(a.System.Addresses) > 0 && slices.Equal(a.System.Addresses, b.System.Addresses)
}

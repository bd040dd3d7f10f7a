// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"net/netip"
	"strings"
)

// hostname: seed 002, Step_CheckHostname and Step_UpdateHostName.
func hostname(r *report) {
	name, want := r.f.System.Hostname, r.t.Host.Name
	if name != want {
		r.warn(fmt.Sprintf("the host calls itself %q (will be %s, restored on reset)", name, want),
			"if other things know it by the old name, give it that name in the cluster")
		return
	}
	for _, a := range addresses(r.f.System.HostnameAddresses) {
		if a.IsLoopback() {
			r.warn(fmt.Sprintf("the host's own name %s resolves to %s, where no other host finds it", name, a),
				fmt.Sprintf("in /etc/hosts on the host, write %s %s", r.t.Host.NodeAddress(), name))
			return
		}
	}
}

// addresses are those of the texts that are addresses, or begin with one.
func addresses(texts []string) []netip.Addr {
	var found []netip.Addr
	for _, text := range texts {
		text, _, _ = strings.Cut(text, "/")
		if a, err := netip.ParseAddr(text); err == nil {
			found = append(found, a.Unmap().WithZone(""))
		}
	}
	return found
}

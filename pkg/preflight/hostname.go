// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// hostname: seed 002, Step_CheckHostname and Step_UpdateHostName. Debian's installer writes 127.0.1.1 for a host's own name, which
// Kubernetes gets along with; 127.0.0.1 and ::1 are what is stopped at.
func hostname(r *report) {
	name, want := r.f.System.Hostname, r.t.Host.Name
	if name != want {
		r.warn(fmt.Sprintf("the host calls itself %q (will be %s, restored on reset)", name, want),
			"if other things know it by the old name, give it that name in the cluster")
		return
	}
	for _, a := range addresses(r.f.System.HostnameAddresses) {
		if a.IsLoopback() {
			cause := fmt.Sprintf("the host's own name %s resolves to %s, where no other host finds it", name, a)
			remedy := fmt.Sprintf("in /etc/hosts on the host, write %s %s", r.t.Host.NodeAddress(), name)
			if a.String() == "127.0.0.1" || a.Is6() {
				r.avoid(spec.CheckHostname, cause, remedy)
			} else {
				r.warn(cause, remedy)
			}
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

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// hostname: seed 002, Step_CheckHostname.
func hostname(r *report) {
	name := r.f.System.Hostname
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		r.error(fmt.Sprintf("the host's own name %q is not a DNS name: it may have lower-case letters, digits, '-' and '.'", name),
			fmt.Sprintf("on the host, run hostnamectl set-hostname %s", r.t.Host.Name))
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

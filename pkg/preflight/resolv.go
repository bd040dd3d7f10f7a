// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const resolvConf = "/etc/resolv.conf"

func resolvQuery(spec.Target) host.Query {
	return host.Query{Paths: []host.PathQuery{{Path: resolvConf}}}
}

// resolv: seed 002, Step_CheckResolvConf. What would break CoreDNS, a name server that leads back to it, is kept out of the pods'
// resolv.conf. The resolver of a container is its engine's, which nobody can write another into.
func resolv(r *report) {
	if len(r.t.Cluster.DNS.CoreDNS.UpstreamServers) > 0 || r.t.Cluster.DNS.IsUsers() || !r.t.Host.Role.IsNode() {
		return
	}
	const remedy = "write a name server that others can reach into " + resolvConf + ", or set dns.coreDNS.upstreamServers"
	switch p, servers := r.f.Paths[resolvConf], r.f.System.Nameservers; {
	case !p.Exists:
		r.avoid(spec.CheckResolv, resolvConf+" does not exist: pods cannot resolve names outside of the cluster", remedy)
	case len(servers) == 0:
		r.avoid(spec.CheckResolv, resolvConf+" names no name server: pods cannot resolve names outside of the cluster", remedy)
	case len(component.Forwards(r.f.System)) > 0:
	default:
		cause := fmt.Sprintf("%s names only the host itself as name server (%s), which pods cannot reach: they cannot resolve names outside of the cluster",
			resolvConf, strings.Join(servers, ", "))
		remedy := remedy
		all := slices.Concat(servers, r.f.System.UpstreamNameservers)
		if slices.ContainsFunc(addresses(all), netip.Addr.IsLinkLocalUnicast) {
			cause = fmt.Sprintf("the host's name servers (%s) have loopback or link-local addresses, which pods' questions are not forwarded to: "+
				"they cannot resolve names outside of the cluster", strings.Join(all, ", "))
			remedy += " (to the link-local one, where pods do reach it)"
		}
		if r.f.System.Container != "" {
			r.warn(cause, remedy)
		} else {
			r.avoid(spec.CheckResolv, cause, remedy)
		}
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

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
	if len(r.t.Cluster.DNS.CoreDNS.UpstreamServers) > 0 || r.t.Cluster.DNS.IsUsers() {
		return
	}
	const remedy = "write a name server that others can reach into " + resolvConf + ", or set dns.coreDNS.upstreamServers"
	switch p, servers := r.f.Paths[resolvConf], r.f.System.Nameservers; {
	case !p.Exists:
		r.avoid(spec.CheckResolv, resolvConf+" does not exist: pods cannot resolve names outside of the cluster", remedy)
	case len(servers) == 0:
		r.avoid(spec.CheckResolv, resolvConf+" names no name server: pods cannot resolve names outside of the cluster", remedy)
	case reachable(servers) || reachable(r.f.System.UpstreamNameservers):
	default:
		cause := fmt.Sprintf("%s names only the host itself as name server (%s), which pods cannot reach: they cannot resolve names outside of the cluster",
			resolvConf, strings.Join(servers, ", "))
		if r.f.System.Container != "" {
			r.warn(cause, remedy)
		} else {
			r.avoid(spec.CheckResolv, cause, remedy)
		}
	}
}

// reachable reports whether one of the name servers can be asked from a pod.
func reachable(servers []string) bool {
	for _, a := range addresses(servers) {
		if !a.IsLoopback() && !a.IsUnspecified() {
			return true
		}
	}
	return false
}

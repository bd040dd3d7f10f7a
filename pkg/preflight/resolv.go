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

// resolv: seed 002, Step_CheckResolvConf. It does not stop a run: a cluster without names from outside works within,
// and what would break CoreDNS, a name server that leads back to it, is kept out of the pods' resolv.conf.
func resolv(r *report) {
	if len(r.t.Cluster.DNS.CoreDNS.UpstreamServers) > 0 {
		return
	}
	const remedy = "write a name server that others can reach into " + resolvConf + ", or set dns.coreDNS.upstreamServers"
	switch p, servers := r.f.Paths[resolvConf], r.f.System.Nameservers; {
	case !p.Exists:
		r.warn(resolvConf+" does not exist: pods cannot resolve names outside of the cluster", remedy)
	case len(servers) == 0:
		r.warn(resolvConf+" names no name server: pods cannot resolve names outside of the cluster", remedy)
	case reachable(servers) || reachable(r.f.System.UpstreamNameservers):
	default:
		r.warn(fmt.Sprintf("%s names only the host itself as name server (%s), which pods cannot reach: they cannot resolve names outside of the cluster", resolvConf, strings.Join(servers, ", ")), remedy)
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

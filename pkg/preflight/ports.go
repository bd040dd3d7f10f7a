// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const kubeletPort = 10250

// portsOf are the ports that a host's components listen on.
func portsOf(t spec.Target) []int32 {
	api, etcd := t.Cluster.ControlPlaneEndpoint.Port, []int32{2379, 2380}
	switch t.Host.Role {
	case spec.RoleEtcd:
		return etcd
	case spec.RoleLoadBalancer:
		return []int32{api}
	case spec.RoleWorker:
		return []int32{kubeletPort}
	case spec.RoleControlPlane:
	}
	ports := []int32{api}
	if t.Cluster.Etcd.IsStacked() {
		ports = append(ports, etcd...)
	}
	return append(ports, kubeletPort, 10257, 10259)
}

func portsQuery(t spec.Target) host.Query { return host.Query{Ports: portsOf(t)} }

// ports: seed 002, Step_CheckPorts. On a host that is ours already it is we who listen.
func ports(r *report) {
	if r.ours() {
		return
	}
	for _, port := range portsOf(r.t) {
		l, taken := r.f.Ports[port]
		if !taken {
			continue
		}
		who := "another process"
		if l.Process != "" {
			who = fmt.Sprintf("%s (process %d)", l.Process, l.PID)
		}
		r.error(fmt.Sprintf("port %d is taken by %s", port, who), "stop it, or let it listen elsewhere")
	}
}

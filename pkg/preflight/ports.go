// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// portsOf are the TCP ports that a host's components listen on. Nothing listens on those of NodePorts.
func portsOf(t spec.Target) []int32 {
	var numbers []int32
	for _, p := range t.Ports() {
		if p.Protocol == spec.TCP && p.Last == 0 {
			numbers = append(numbers, p.Number)
		}
	}
	return numbers
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

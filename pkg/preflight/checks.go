// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// subject is one check: what it must know, and what it finds.
type subject struct {
	name  string
	query func(t spec.Target) host.Query
	find  func(r *report)
}

// subjects are all checks, in the order in which problems are shown.
func subjects() []subject {
	return []subject{
		{name: "privilege", find: privilege},
		{name: "os", find: operatingSystem},
		{name: "hardware", find: hardware},
		{name: "disk", find: disk},
		{name: "kernel", query: kernelQuery, find: kernel},
		{name: "container", find: container},
		{name: "hostname", find: hostname},
		{name: "network", query: networkQuery, find: network},
		{name: "time", find: timeSync},
		{name: "installation", query: installationQuery, find: installation},
		{name: "runtime", query: runtimeQuery, find: containerRuntime},
		{name: "loadbalancer", query: loadBalancerQuery, find: loadBalancer},
		{name: "ports", query: portsQuery, find: ports},
		{name: "resolv", query: resolvQuery, find: resolv},
		{name: "selinux", find: selinux},
		{name: "firewall", query: firewallQuery, find: firewall},
		{name: "swap", find: swap},
	}
}

// report is what is known of one host, and collects what is wrong with it.
type report struct {
	t        spec.Target
	f        *host.Facts
	owner    host.Ownership
	check    string
	problems []Problem
}

// ours reports whether what is found on the host may be our own work.
func (r *report) ours() bool { return r.owner.Owns(r.f) || r.owner.Adopts(r.f) }

// runs reports whether a process of that name, of at most 15 bytes, runs.
func (r *report) runs(name string) bool {
	return slices.Contains(strings.Fields(string(r.f.Commands[processes].Stdout)), name)
}

func (r *report) error(cause, remedy string) { r.add(Error, cause, remedy) }

func (r *report) warn(cause, remedy string) { r.add(Warning, cause, remedy) }

// avoid stops the run, unless the check's errors are to be ignored. A host in use is not kept from what would repair it.
func (r *report) avoid(check spec.PreflightCheck, cause, remedy string) {
	switch {
	case r.ours() || slices.Contains(r.t.System().IgnorePreflightErrors, check):
		r.warn(cause, remedy)
	default:
		r.error(cause, fmt.Sprintf("%s; to go on all the same, add %s to system.ignorePreflightErrors", remedy, check))
	}
}

func (r *report) add(s Severity, cause, remedy string) {
	r.problems = append(r.problems, Problem{Host: r.t.Host.Name, Check: r.check, Severity: s, Cause: cause, Remedy: remedy})
}

func query(t spec.Target) host.Query {
	q := identityQuery()
	for _, s := range subjects() {
		if s.query != nil {
			q.Merge(s.query(t))
		}
	}
	return q
}

func check(t spec.Target, f *host.Facts, o host.Ownership) []Problem {
	r := &report{t: t, f: f, owner: o}
	for _, s := range subjects() {
		r.check = s.name
		if s.query == nil || !r.stopped(s.query(t)) {
			s.find(r)
		}
	}
	return r.problems
}

// stopped reports whether the host was too slow to answer q: then nothing is said of what q was for.
func (r *report) stopped(q host.Query) bool {
	for _, c := range q.Commands {
		after := r.f.Commands[c.ID].Stopped
		if after == 0 {
			continue
		}
		tell := r.error
		if r.ours() {
			tell = r.warn
		}
		tell(fmt.Sprintf("it cannot be determined: %q did not end within %s and was stopped", host.Word(strings.Join(c.Argv, " "), 120), after),
			"see what the host is busy with or what hangs there, and try again")
		return true
	}
	return false
}

// size is bytes for a person, in the binary units that hosts' own tools print.
func size(bytes int64) string {
	const mib, gib = 1 << 20, 1 << 30
	if bytes < gib {
		return fmt.Sprintf("%d MiB", bytes/mib)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gib)
}

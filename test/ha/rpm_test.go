// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestSimulatedRPM makes a cluster of hosts of the Red Hat family that programs of Debian simulate: packages are dnf's, firewalld and
// NetworkManager run. A user's debs are for other hosts, and are not missed.
func TestSimulatedRPM(t *testing.T) {
	c := start(t, "har", 2, `  roleGroups: {master: [$1], worker: [$2]}
  kubernetes: {version: v1.36.3, type: kubexm}
  etcd: {type: kubexm}
  system: {rpms: [jq], debs: [nfs-common]}
`, func(o *hosts.Options) { o.System = hosts.SimulatedRPM })
	before := c.rpms()
	c.create()
	for host, packages := range c.rpms() {
		var added []string
		for _, p := range packages {
			if !slices.Contains(before[host], p) {
				added = append(added, p)
			}
		}
		if !slices.Equal(added, []string{"jq", "libjq", "oniguruma"}) {
			t.Errorf("%s has the packages %q now", host, added)
		}
	}
	c.works()
	c.staysAsItIs()
	c.isReset()
	for host, packages := range c.rpms() {
		if !slices.Equal(packages, before[host]) {
			t.Errorf("%s had the packages %q, and has %q", host, before[host], packages)
		}
	}
}

// rpms are the names of packages on each host.
func (c *cluster) rpms() map[string][]string {
	c.t.Helper()
	all := map[string][]string{}
	for _, h := range c.lab.Hosts {
		out, err := h.Exec(c.t.Context(), "rpm", "-qa", "--qf", "%{NAME}\n")
		if err != nil || out == "" {
			c.t.Fatalf("%s lists no packages: %v", h.Name, err)
		}
		all[h.Name] = slices.Sorted(strings.FieldsSeq(out))
	}
	return all
}

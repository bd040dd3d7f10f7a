// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// unknown are the members that no host of s has, as this member's look at them tells.
func (p *process) unknown(s etcd.Settings) []etcd.Unknown {
	p.t.Helper()
	facts := &host.Facts{Commands: map[string]host.Result{}}
	for _, q := range etcd.Members(s).Observe().Commands {
		said, ok := p.run(q.Argv)
		facts.Commands[q.ID] = host.Result{ExitCode: map[bool]int{false: 1}[ok], Stdout: []byte(said)}
	}
	unknown, seen := etcd.UnknownMembers(s, facts)
	if !seen {
		p.t.Error("the members were not seen")
	}
	return unknown
}

// A member that no host has is reported and stays, until its host is said to be gone: then it is removed as those are that leave.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	for _, p := range all {
		p.must(p.member(), firstRun)
	}
	n1, n2, n3 := all[0], all[1], all[2]
	if got := n1.unknown(n1.settings); len(got) != 0 {
		t.Errorf("no host has %v", got)
	}
	s := n1.without("n3")
	s.Leaving = nil
	n1.must(etcd.Members(s), "")
	got := n1.unknown(s)
	if len(got) != 1 || got[0].Name != "n3" || got[0].ID != n3.record()[2] || got[0].PeerURL != "https://"+n3.address+":2380" {
		t.Fatalf("the unknown members are %v", got)
	}

	// Who is needed for quorum stays, and so does whom a host has.
	gone := s
	gone.Gone = []string{"n2", "n3"}
	n2.stop()
	n1.refuses(etcd.Members(gone), "would have no quorum")
	n2.must(n2.member(), firstRun)
	n3.stop()
	gone.Gone = []string{"n2", got[0].ID}
	n1.must(etcd.Members(gone), "n3 (https://"+n3.address+":2380) is a member still")
	if members := n1.members(); members != "n1 n2" {
		t.Errorf("the members are %q", members)
	}
	if got := n1.unknown(s); len(got) != 0 {
		t.Errorf("no host has %v", got)
	}
}

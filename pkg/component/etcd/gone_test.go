// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// A member that no host has stays, until its host is said to be gone: then it is removed as those are that leave.
func TestGoneMembers(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	for _, p := range all {
		p.must(p.member(), firstRun)
	}
	n1, n2, n3 := all[0], all[1], all[2]
	gone := n1.without("n3")
	gone.Leaving = nil
	n1.must(etcd.Members(gone), "")

	// Who is needed for quorum stays, and so does whom a host has.
	gone.Gone = []string{"n2", "n3"}
	n2.stop()
	n1.refuses(etcd.Members(gone), "would have no quorum")
	n2.must(n2.member(), firstRun)
	n3.stop()
	gone.Gone = []string{"n2", n3.record()[2]}
	n1.must(etcd.Members(gone), "n3 (https://"+n3.address+":2380) is a member still")
	if members := n1.members(); members != "n1 n2" {
		t.Errorf("the members are %q", members)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// TestLearnForgets: a block that was removed and a port that was freed have no entry in what is seen afterwards.
func TestLearnForgets(t *testing.T) {
	m := &hostState{facts: &host.Facts{
		Blocks: map[string]string{"/etc/hosts#cluster": "10.0.0.1 api", "/etc/hosts#other": "x"},
		Ports:  map[int32]host.Listener{6443: {Process: "kube-apiserver"}, 22: {Process: "sshd"}},
	}}
	asked := host.Query{
		Paths: []host.PathQuery{{Path: "/etc/hosts", Block: "cluster"}}, Ports: []int32{6443}, Units: []string{"a.service"},
	}
	m.learn(asked, &host.Facts{Units: map[string]host.UnitState{"a.service": {Active: "active"}}})
	want := &host.Facts{
		Blocks: map[string]string{"/etc/hosts#other": "x"}, Ports: map[int32]host.Listener{22: {Process: "sshd"}},
		Units: map[string]host.UnitState{"a.service": {Active: "active"}},
	}
	if diff := cmp.Diff(want, m.facts); diff != "" {
		t.Error(diff)
	}
}

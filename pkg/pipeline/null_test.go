// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/nulltest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestNullComponents plugs components in that nothing else in the house knows: a folder and a line in a table for each. The plans
// have them, and nothing of those whose place they take.
func TestNullComponents(t *testing.T) {
	tables.Networks["null"] = nulltest.Network{}
	t.Cleanup(func() { delete(tables.Networks, "null") })

	null := func(t *spec.Target) { t.Cluster.Network.Plugin = "null" }
	for _, way := range ways {
		p, err := pipeline.CreateCluster("prod", []pipeline.Node{
			node("cp1", "192.168.0.11", spec.RoleControlPlane, machine, by(way), null),
			node("w1", "192.168.0.21", spec.RoleWorker, machine, by(way), null),
		}, bundle(t))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := p.Text(&text); err != nil {
			t.Fatal(err)
		}
		if got := text.String(); strings.Contains(strings.ToLower(got), "flannel") {
			t.Errorf("%s: the plan knows a network that the cluster does not have", way)
		} else {
			golden(t, "null-"+string(way)+".golden", got)
		}
		roundTrip(t, p)
	}
}

// TestUnknownComponent: what is in no table is refused by its field, with what there is.
func TestUnknownComponent(t *testing.T) {
	_, err := pipeline.JoinWorker(node("w1", "192.168.0.21", spec.RoleWorker, machine, func(t *spec.Target) {
		t.Cluster.Network.Plugin = "no-such"
	}), bundle(t))
	if want := `host w1: cluster.network.plugin: there is no "no-such", but ["flannel"]`; err == nil || err.Error() != want {
		t.Errorf("have %v, want %s", err, want)
	}
}

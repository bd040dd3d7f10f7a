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
	tables.Runtimes["null"] = nulltest.Runtime{}
	tables.Networks["null"] = nulltest.Network{}
	t.Cleanup(func() {
		delete(tables.Runtimes, "null")
		delete(tables.Networks, "null")
	})

	null := func(t *spec.Target) {
		t.Cluster.ContainerRuntime = spec.ContainerRuntime{Type: "null", DataDir: "/var/lib/null"}
		t.Cluster.Network.Plugin = "null"
	}
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
		for _, absent := range []string{"flannel", "containerd"} {
			if strings.Contains(strings.ToLower(text.String()), absent) {
				t.Errorf("%s: the plan has %s, which the cluster does not", way, absent)
			}
		}
		golden(t, "null-"+string(way)+".golden", text.String())
		roundTrip(t, p)
	}
}

// TestUnknownComponent: what is in no table is refused by its field, with what there is.
func TestUnknownComponent(t *testing.T) {
	_, err := pipeline.JoinWorker(node("w1", "192.168.0.21", spec.RoleWorker, machine, func(t *spec.Target) {
		t.Cluster.ContainerRuntime.Type, t.Cluster.Network.Plugin = "no-such", "none-such"
	}), bundle(t))
	if want := `host w1: cluster.containerRuntime.type: there is no "no-such", but ["containerd"]
cluster.network.plugin: there is no "none-such", but ["flannel"]`; err == nil || err.Error() != want {
		t.Errorf("have %v, want %s", err, want)
	}
}

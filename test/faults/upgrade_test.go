// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults && previous

package faults

import (
	"context"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// A control plane host and a worker are brought to another minor version of Kubernetes by processes that die at any boundary of any
// step, or within it: in the midst of changes that are rolled back together when they fail.
func TestUpgradeIsKilled(t *testing.T) {
	for name, cluster := range map[string]spec.Cluster{
		"Units":      {Kubernetes: spec.Kubernetes{Type: spec.KubernetesKubexm}},
		"StaticPods": {},
	} {
		t.Run(name, func(t *testing.T) { upgradeRound(t, cluster) })
	}
}

func upgradeRound(t *testing.T, shared spec.Cluster) {
	newer := all.of(shared, spec.RoleControlPlane, spec.RoleWorker)
	older := *newer
	var err error
	if older.bundle, err = previous(t.Context(), lab.Bundle(t, "KUBEXM_BUNDLE_PREVIOUS", "bundle-v1.35.4")); err != nil {
		t.Fatal(err)
	}
	older.kubernetes = older.bundle.Version("kubernetes")
	tr := newTrialOf(t, &older)
	if _, err := engine.New(older.options(nil)).Run(tr.Context(), tr.plan(2)); err != nil {
		t.Fatal(err)
	}

	tr.cluster = newer
	for i, upgrade := range []func(pipeline.Node, *artifact.Bundle) (*plan.Plan, error){pipeline.CreateControlPlane, pipeline.JoinWorker} {
		nodes, err := newer.nodes(tr.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		n := nodes[i]
		n.Was = older.kubernetes
		p, err := upgrade(n, newer.bundle)
		if err != nil {
			t.Fatal(err)
		}
		if err := newer.writePlan(p); err != nil {
			t.Fatal(err)
		}
		if visited := tr.dieAndGoOn(order{Verb: create, Seed: chosen.seed, Chance: 1}, nil); len(visited) < p.Graph().Len()/2 {
			t.Errorf("only %d children died, for %d steps", len(visited), p.Graph().Len())
		}
		tr.demandUpgraded(p)
	}
	tr.demandCluster(newer.names())
	tr.reset(nil)
}

func previous(ctx context.Context, dir string) (*artifact.Bundle, error) {
	store, err := artifact.OpenStore("")
	if err != nil {
		return nil, err
	}
	return artifact.Open(ctx, dir, store)
}

// demandUpgraded fails the test unless the plan's host is as the plan says, with nothing half made beside it, and its Node has the version.
func (tr *trial) demandUpgraded(p *plan.Plan) {
	tr.Helper()
	again, err := engine.New(tr.cluster.options(nil)).Run(tr.Context(), p)
	if err != nil {
		tr.Fatalf("a further run: %v", err)
	}
	if !again.Converged() {
		tr.Errorf("a further run changed %d steps of %d", again.Total().Changed, again.Total().Total)
	}
	api, err := tr.cluster.api()
	if err != nil {
		tr.Fatal(err)
	}
	for _, name := range p.Hosts {
		tr.eventually(func() error { return api.NodeVersion(tr.Context(), name, tr.cluster.kubernetes) })
	}
	for _, h := range tr.hosts {
		tr.demandTidy(h)
	}
}

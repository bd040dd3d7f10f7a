// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package upgrade

import (
	"fmt"
	"os"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestMixed has hosts of two versions in one cluster, as a rollout by replacement does: a control plane host of the next version
// joins one of the version before, and a worker of the version before joins after that. None has an image of the other version.
// At last the first host follows in place.
func TestMixed(t *testing.T) {
	older := openBundle(t, "KUBEXM_BUNDLE_PREVIOUS", "bundle-v1.35.4", "artifacts-previous")
	newer := openBundle(t, "KUBEXM_BUNDLE", "bundle", "artifacts")
	from, to := older.Version(artifact.Kubernetes), newer.Version(artifact.Kubernetes)
	c := start(t, fmt.Sprint("upgrade-mixed-", os.Getpid()), 3, spec.Cluster{Etcd: spec.Etcd{Type: spec.EtcdKubeadm}})
	first, second, worker := c.pool.Hosts[0], c.pool.Hosts[1], c.pool.Hosts[2]
	members := func(order spec.BootstrapMode) func(*spec.Target) {
		return func(target *spec.Target) {
			target.BootstrapMode = order
			target.Members = []spec.Member{
				{Name: first.Name, Role: spec.RoleControlPlane, Address: first.Address},
				{Name: second.Name, Role: spec.RoleControlPlane, Address: second.Address},
			}
		}
	}
	made := func(p *plan.Plan, err error) *plan.Plan {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	c.converge(c.controlPlanePlan(older), older)
	c.converge(made(pipeline.JoinControlPlane(c.node(second, spec.RoleControlPlane, newer, members(spec.BootstrapJoin)), newer)), newer)
	c.converge(made(pipeline.JoinWorker(c.node(worker, spec.RoleWorker, older), older)), older)
	c.versions(from, to, from)
	c.converge(c.controlPlanePlan(newer, members(spec.BootstrapInit)), newer)
	c.versions(to, to, from)
	c.converged(made(pipeline.JoinControlPlane(c.node(second, spec.RoleControlPlane, newer, members(spec.BootstrapJoin)), newer)), newer)
	c.reset()
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// joining measures a worker's way into a cluster, and what it costs to look at one that is in.
func joining() experiment {
	return experiment{
		measurements: []measurement{
			{
				name: "worker/ready", unit: "s", goal: goal{of: "ratio", bound: 1.0},
				about: "a fresh host that answers SSH becomes a Node that is Ready and whose network is up, as asked by the same code on both sides, " +
					"artifacts in place at the controller; reference: test/bench/join.sh with the same artifacts",
			},
			{
				name: "worker/observe-exchanges", unit: "exchanges", goal: goal{of: "ours", bound: 1},
				about: "how often a worker that has joined is talked to in a run that finds nothing to change",
			},
			{
				name: "worker/observe", unit: "ms",
				about: "how long such a run takes for its host, from the first packet to the last; reference: ssh host true",
			},
		},
		// Each round has two fresh hosts, so that neither side finds what the other has left.
		hosts: func(rounds int) int { return 1 + 2*rounds },
		round: func(ctx context.Context, l *lab, hosts []string, round int, take note) error {
			c, err := l.controlPlane(ctx, hosts[0])
			if err != nil {
				return err
			}
			mine, theirs := hosts[1+2*round], hosts[2+2*round]
			return inTurn(round,
				func() error { return c.join(ctx, mine, take) },
				func() error { return c.joinByScript(ctx, theirs, take) },
			)
		},
	}
}

// join makes a host a worker by the pipeline, and observes it again.
func (c *cluster) join(ctx context.Context, name string, take note) error {
	defer c.lab.switchOff(ctx, name)
	var p *plan.Plan
	var told steps
	took, err := timed(func() error {
		node, err := c.node(ctx, name, spec.RoleWorker)
		if err != nil {
			return err
		}
		if p, err = pipeline.JoinWorker(node, c.bundle); err != nil {
			return err
		}
		if _, err = c.engine(&told).Run(ctx, p); err != nil {
			return err
		}
		return c.awaitWorker(ctx, name)
	})
	if err != nil {
		return err
	}
	c.lab.log("  %s", told.longest())
	take("worker/ready", ours, took)
	report, err := c.engine(nil).Run(ctx, p)
	if err != nil {
		return err
	}
	if !report.Converged() {
		return fmt.Errorf("host %s: a second run changed %d of %d nodes", name, report.Total().Changed, report.Total().Total)
	}
	take("worker/observe-exchanges", ours, float64(report.Hosts[0].Exchanges))
	take("worker/observe", ours, report.Hosts[0].Duration.Seconds()*1e3)
	took, err = timed(func() error { return c.lab.ssh(ctx, name, nil, "true") })
	if err != nil {
		return err
	}
	take("worker/observe", reference, took*1e3)
	return nil
}

// joinByScript makes a host a worker by the script.
func (c *cluster) joinByScript(ctx context.Context, name string, take note) error {
	defer c.lab.switchOff(ctx, name)
	joins, err := c.script(name, spec.RoleWorker)
	if err != nil {
		return err
	}
	took, err := timed(func() error {
		if err := joins(ctx); err != nil {
			return err
		}
		return c.awaitWorker(ctx, name)
	})
	if err != nil {
		return err
	}
	take("worker/ready", reference, took)
	return nil
}

// awaitWorker waits until a host is a Node that takes Pods and has a network. Both sides end with it.
func (c *cluster) awaitWorker(ctx context.Context, name string) error {
	return await(ctx,
		func(ctx context.Context) error { return c.api.NodeReady(ctx, name) },
		func(ctx context.Context) error {
			namespace, agent := flannel.Network{}.Agent()
			return c.api.NetworkReady(ctx, namespace, agent, name)
		})
}

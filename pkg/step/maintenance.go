// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
)

// Drain is a gate: it cordons a Node for maintenance and evicts its Pods, and makes Output when that is done. It is run only
// for steps that take the output, and undone when these fail.
type Drain struct {
	onController
	Node   string `json:"node"`
	Output string `json:"output"`
}

// Meta makes Output.
func (d Drain) Meta() Meta { return Meta{Name: "drain", Makes: []string{d.Output}} }

// Probe always finds a difference: Pods come back to a Node for as long as it is not held.
func (d Drain) Probe(context.Context, *Runtime) (Diff, error) {
	return Diff{{"node " + d.Node, "in use", "drained"}}, nil
}

// Run drains the Node.
func (d Drain) Run(ctx context.Context, rt *Runtime) error {
	if err := rt.Cluster.DrainNode(ctx, d.Node); err != nil {
		return err
	}
	rt.Make(d.Output, nil)
	return nil
}

// Rollback uncordons the Node, if the drain cordoned it.
func (d Drain) Rollback(ctx context.Context, rt *Runtime) error {
	return rt.Cluster.EndMaintenance(ctx, d.Node, nil)
}

// Uncordon ends the maintenance of a Node that a Drain has held, in this run or an earlier one. A Node that somebody else had
// cordoned before stays so.
type Uncordon struct {
	onController
	Node string `json:"node"`
	// DaemonSets in kube-system whose Pod on the Node is made anew first, because what it runs was replaced beneath it.
	DaemonSets []string `json:"daemonSets,omitempty"`
	// After are outputs that must be there first.
	After []string `json:"after,omitempty"`
}

// Meta takes After.
func (u Uncordon) Meta() Meta { return Meta{Name: "uncordon", Takes: u.After} }

// Probe differs while the Node is held.
func (u Uncordon) Probe(ctx context.Context, rt *Runtime) (Diff, error) {
	held, err := rt.Cluster.NodeInMaintenance(ctx, u.Node)
	if err != nil || !held {
		return nil, err
	}
	return Diff{{"node " + u.Node, "in maintenance", "in use"}}, nil
}

// Run releases the Node. It returns NotYet while Pods that are made anew are not Ready.
func (u Uncordon) Run(ctx context.Context, rt *Runtime) error {
	return rt.Cluster.EndMaintenance(ctx, u.Node, u.DaemonSets)
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// stageAhead has the content of the nodes from a position on sent to the host while they are brought about, once for each session. What
// cannot be told of a node yet is sent when it is its turn.
func (m *hostState) stageAhead(ctx context.Context, at int) error {
	if m.ahead {
		return nil
	}
	m.ahead = true
	lots := m.lots(ctx, at)
	if len(lots) == 0 {
		return nil
	}
	return m.inTime(ctx, "the staging of content", m.o.ObserveTimeout, func(ctx context.Context, _ func()) error {
		return m.session.StageAhead(ctx, lots...)
	})
}

// lots is the content of the nodes from a position on, node by node.
func (m *hostState) lots(ctx context.Context, at int) [][]host.Blob {
	if m.o.Artifacts == nil {
		return nil
	}
	// It is read for longer than the step takes with which it begins.
	reading := context.WithoutCancel(ctx)
	var lots [][]host.Blob
	for i := at; i < len(m.nodes); i++ {
		if m.found[i].done() || m.found[i].err != nil {
			continue
		}
		var lot []host.Blob
		// What a step panics of is said of it when it runs.
		_ = guard(func() error {
			lot = step.Blobs(reading, m.o.Artifacts, m.view(i), m.nodes[i].Step)
			return nil
		})
		if len(lot) > 0 {
			lots = append(lots, lot)
		}
	}
	return lots
}

// prepare has content sent while the node at a position waits for others: for a Node to be drained, for one. An error is of no interest:
// it comes again when the node runs.
func (m *hostState) prepare(ctx context.Context, at int) {
	if err := guard(func() error {
		if err := m.dial(ctx); err != nil {
			return err
		}
		if err := m.begin(ctx); err != nil {
			return err
		}
		if m.session.Waited() { // for a run that was killed, and has done more than was seen
			if err := m.look(ctx, at); err != nil {
				return err
			}
		}
		return m.stageAhead(ctx, at)
	}); err != nil {
		m.drop()
	}
}

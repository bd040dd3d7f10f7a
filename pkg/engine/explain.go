// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// explain looks closer at what differs on the host, and returns in which lines, by node and subject. That is for people: nothing
// depends on whether the host answers once more.
func (m *hostState) explain(ctx context.Context) map[string]map[string]string {
	var q host.Query
	m.differing(func(n plan.Node, v step.View) { q.Merge(step.Closer(n.Step, v)) })
	closer := &host.Facts{}
	if len(q.Paths) > 0 {
		if seen, err := m.observe(ctx, q); err == nil {
			closer = seen
		}
	}
	all := make(map[string]map[string]string)
	m.differing(func(n plan.Node, v step.View) {
		if lines := step.Lines(n.Step, v, closer); len(lines) > 0 {
			all[n.ID] = lines
		}
	})
	return all
}

// differing calls f with all nodes that are known to differ.
func (m *hostState) differing(f func(plan.Node, step.View)) {
	for at, found := range m.found {
		if found.err == nil && len(found.diff) > 0 {
			f(m.nodes[at], m.view(at))
		}
	}
}

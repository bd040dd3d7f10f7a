// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// mostShared is how many nodes share an exchange at most: its answer is all that tells that the host is alive.
const mostShared = 64

// sharing is one more than the position of the last node that may share the exchange of the one at a position, which is not so.
func (m *hostState) sharing(at int) int {
	if m.found[at].err != nil {
		return at + 1
	}
	kind := step.Sharing(m.nodes[at].Step)
	end := at + 1
	for kind != "" && end < len(m.nodes) && end-at < mostShared && !m.found[end].done() && m.found[end].err == nil &&
		step.Sharing(m.nodes[end].Step) == kind {
		end++
	}
	return end
}

// share brings the nodes of the positions from at up to, not including, end about in one exchange, each as an act of its own in the
// journal and the undo store. What was done is noted in m.did, and counts when it was seen to be so. When one fails, that was its first
// attempt, and the others have not been attempted.
func (m *hostState) share(ctx context.Context, at, end int) {
	done := 0
	err := guard(func() error { return m.shareOnce(ctx, at, end, &done) })
	if err == nil {
		for i := at; i < at+done; i++ {
			if err := m.unmet(i); err != nil {
				m.failed, m.failedAt = err, i
				return
			}
		}
		return
	}
	m.fresh = at
	if at+done < end {
		m.failed, m.failedAt = err, at+done
	}
	var p *Panic
	if errors.As(err, &p) {
		m.drop()
	}
}

// shareOnce is share without its failures. It counts the acts that the host says are done.
func (m *hostState) shareOnce(ctx context.Context, at, end int, done *int) error {
	had := m.session != nil
	if err := m.dial(ctx); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	if !had && m.session.Waited() {
		return m.look(ctx, at) // what a run that was killed did meanwhile
	}
	if err := m.stageAhead(ctx, at); err != nil {
		return err
	}
	var acts []host.Act
	limit := m.o.ObserveTimeout
	began := m.o.Clock.Now()
	extend := func() {}
	for i := at; i < end; i++ {
		n := m.nodes[i]
		var made outputs
		act, err := step.Shared(m.runtime(n, m.view(i), &made), n.Step, func() {
			now := m.o.Clock.Now()
			m.did[i] = outcome{
				changed: true, what: summary(m.found[i].diff), duration: now.Sub(began), attempt: 1, attempts: attempts(n),
			}
			began = now
			*done++
			if extend(); i+1 < end {
				m.begins(i+1, outcome{attempt: 1, attempts: attempts(m.nodes[i+1])})
			}
		})
		if err != nil {
			return err
		}
		limit = max(limit, act.Timeout)
		acts = append(acts, act)
	}
	next := m.bound(end - 1)
	asked := m.query(at, next)
	acts[len(acts)-1].Verify = asked
	m.begins(at, outcome{attempt: 1, attempts: attempts(m.nodes[at])})
	var seen *host.Facts
	if err := m.inTime(ctx, "an act", limit, func(ctx context.Context, again func()) (err error) {
		extend = again
		seen, err = m.session.Do(ctx, acts...)
		return err
	}); err != nil {
		return err
	}
	m.learn(asked, seen)
	m.judge(at, next)
	m.fresh = next
	return nil
}

// begins tells that an attempt at the node at a position begins, where that was not told when it shared an exchange.
func (m *hostState) begins(at int, out outcome) {
	if at < m.begun {
		return
	}
	m.begun = at + 1
	ev := of(event.Started, m.nodes[at])
	ev.Attempt, ev.Attempts, ev.Message = out.attempt, out.attempts, m.nodes[at].Meta().Description
	ev.Done, ev.Total = int64(at+1), int64(len(m.nodes))
	m.tell(ev)
}

// attempts is how many the step allows.
func attempts(n plan.Node) int { return max(1, n.Meta().Retry.Attempts) }

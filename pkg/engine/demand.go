// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// Whether a gate is run is decided by demand, not beforehand: a node that was found to be so may differ after a change to
// its host and only then need what the gate makes. A gate is wanted when it makes nothing or nobody takes what it makes
// (then it is a goal of its own), when a node that differs takes its outputs, and when a wanted gate comes after it. This
// cannot lock up: of all that is wanted or next on its host, the first in topological order has nothing to wait for.

// wantFor wants what the nodes of h that differ take. A node of which that is not known has no wish: a Node is not drained for it.
func (s *scheduler) wantFor(h *hostRun) {
	s.moved = true
	for at := h.at; at < len(h.nodes); at++ {
		if f := h.m.found[at]; !f.done() && !f.undecided() {
			for _, up := range s.nodes[h.nodes[at]].takes {
				s.want(up)
			}
		}
		for _, up := range s.nodes[h.nodes[at]].after {
			s.want(up)
		}
	}
}

func (s *scheduler) want(i int) {
	n := &s.nodes[i]
	if n.host != nil || n.wanted || n.ended() {
		return
	}
	n.wanted, s.moved = true, true
	for _, up := range n.after {
		s.want(up)
	}
	for _, up := range n.takes {
		s.want(up)
	}
}

// goal reports whether a gate is run for its own sake.
func (s *scheduler) goal(i int) bool {
	return len(s.g.Node(i).Makes) == 0 || len(s.g.Downstream(i)) == 0
}

// unneeded reports whether all that could take a gate's outputs has ended, or is a gate that is not needed itself.
func (s *scheduler) unneeded(i int) bool {
	if s.goal(i) {
		return false
	}
	for _, d := range s.g.Downstream(i) {
		if n := &s.nodes[d]; !n.ended() && (n.host != nil || !s.unneeded(d)) {
			return false
		}
	}
	return true
}

// advanceGate starts a gate that is wanted and has what it waits for, and stops one that is not needed any more.
func (s *scheduler) advanceGate(i int) {
	n := &s.nodes[i]
	switch {
	case n.ended() || s.ctx.Err() != nil:
		return
	case n.status == running:
		if s.stopping || len(s.failures) > 0 && s.unneeded(i) {
			n.cancel(errUnneeded)
		}
		return
	case s.stopping:
		s.blockNode(i, s.failures[0].root())
		return
	}
	if root := cmp.Or(s.failedAmong(n.after), s.failedAmong(n.takes)); root != "" {
		s.blockNode(i, root)
		return
	}
	if s.goal(i) {
		s.want(i)
	}
	if !n.wanted || s.unneeded(i) || !s.wellAll(n.after) || !s.wellAll(n.takes) {
		return
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	n.status, n.cancel = running, cancel
	value := s.g.Node(i).Value
	s.work(func() func() {
		out := s.gate(ctx, value)
		return func() {
			unneeded := errors.Is(context.Cause(ctx), errUnneeded)
			cancel(nil)
			if out.err == nil || !unneeded {
				s.ended(i, out)
				return
			}
			n.status = pending
			s.moved = true
		}
	})
}

// endGates tells of the gates that were not run because nobody took what they make.
func (s *scheduler) endGates() {
	for _, i := range s.gates {
		if n := &s.nodes[i]; n.status == pending && s.ctx.Err() == nil && (!n.wanted || s.unneeded(i)) {
			n.status = skipped
			ev := of(event.Skipped, s.g.Node(i).Value)
			ev.Message = "not needed: nothing that is to be done takes what it makes"
			s.tell(ev)
		}
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
)

// Slots keep the steps that have a limit of their own (plan.Limits.Concurrency) from being made on more hosts at once, in all
// runs of the engines that share them. They are safe for concurrent use. The zero value is not usable; see NewSlots.
type Slots struct {
	scope string
	*slots
}

type slots struct {
	mu    sync.Mutex
	taken map[string]int
	freed chan struct{} // closed, and replaced, when one is free again
}

// NewSlots returns Slots of which none is taken.
func NewSlots() Slots {
	return Slots{slots: &slots{taken: make(map[string]int), freed: make(chan struct{})}}
}

// In are the same slots for groups that others, in another scope, may have under the same name: those of another cluster.
func (s Slots) In(scope string) Slots { return Slots{scope: scope, slots: s.slots} }

// take takes one of as many slots as there are for the group, when there is one. It calls wait, once, if there is none at first.
// It returns false when ctx ends or stop is closed before.
func (s Slots) take(ctx context.Context, stop <-chan struct{}, group string, of int, wait func()) bool {
	group = s.scope + "/" + group
	for told := false; ; told = true {
		s.mu.Lock()
		freed, free := s.freed, s.taken[group] < of
		if free {
			s.taken[group]++
		}
		s.mu.Unlock()
		if free {
			return true
		}
		if !told {
			wait()
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		case <-stop:
			return false
		}
	}
}

// give gives a slot back.
func (s Slots) give(group string) {
	group = s.scope + "/" + group
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[group]--; s.taken[group] == 0 {
		delete(s.taken, group)
	}
	close(s.freed)
	s.freed = make(chan struct{})
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"iter"
	"sync"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
)

// Run is a plan that is being run.
type Run struct {
	mu     sync.Mutex
	more   sync.Cond
	told   []event.Event
	ended  bool
	report Report
	err    error
}

// Start is Run without waiting. Anyone who starts a run need not watch it.
func (e *Engine) Start(ctx context.Context, p *plan.Plan) *Run {
	r := &Run{}
	r.more.L = &r.mu
	go func() {
		report, err := e.run(ctx, p, event.Readers(e.o.Reader, event.ReaderFunc(r.add)))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended, r.report, r.err = true, report, err
		r.more.Broadcast()
	}()
	return r
}

func (r *Run) add(ev event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, ev)
	r.more.Broadcast()
}

// Events yields everything that happens, from the start of the run to its end, to each caller. Breaking off does not
// stop the run: cancel its context for that.
func (r *Run) Events() iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		for i := 0; ; i++ {
			ev, ok := r.event(i)
			if !ok || !yield(ev) {
				return
			}
		}
	}
}

// event waits for event i; false means that there is none.
func (r *Run) event(i int) (event.Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i >= len(r.told) && !r.ended {
		r.more.Wait()
	}
	if i >= len(r.told) {
		return event.Event{}, false
	}
	return r.told[i], true
}

// Wait returns what the run came to, when it has ended. See Engine.Run.
func (r *Run) Wait() (Report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.ended {
		r.more.Wait()
	}
	return r.report, r.err
}

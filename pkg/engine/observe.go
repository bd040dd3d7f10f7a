// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Look observes hosts, each in one exchange, and changes nothing. The facts of those that answered come beside the error,
// an *Error that names those that did not. Of a host that is somebody else's they are the System and
// the Owner alone, beside its failure.
func (e *Engine) Look(ctx context.Context, hosts []string, query func(name string) host.Query) (map[string]*host.Facts, error) {
	w := e.worker("Look", "", e.o.Reader)
	facts := make(map[string]*host.Facts, len(hosts))
	var mu sync.Mutex
	failures := w.each(ctx, hosts, func(ctx context.Context, name string) outcome {
		m := &hostState{worker: w, name: name}
		defer m.leave(ctx, true)
		out := m.contact(ctx, query(name), atOnce())
		if host.KindOf(out.err) == host.KindForeign {
			mu.Lock()
			defer mu.Unlock()
			facts[name] = m.facts
		}
		if out.err == nil {
			w.tell(event.Event{Type: event.HostObserved, Host: name, Duration: out.duration})
			mu.Lock()
			defer mu.Unlock()
			facts[name] = m.facts
		}
		return out
	})
	return facts, w.errorOf(ctx, failures)
}

// atOnce is the patience of what only looks: who asks wants to know now that a host does not answer.
func atOnce() step.Retry { return step.Retry{Attempts: 1} }

// each calls f for every host, as many at once as the options allow, and returns the failures in the hosts' order. It
// tells of them.
func (w *worker) each(ctx context.Context, hosts []string, f func(ctx context.Context, name string) outcome) []Failure {
	found := make([]*Failure, len(hosts))
	var g errgroup.Group
	g.SetLimit(w.o.HostsAtOnce)
	for i, name := range hosts {
		g.Go(func() error {
			var out outcome
			if err := guard(func() error { out = f(ctx, name); return nil }); err != nil {
				out = outcome{err: err}
			}
			if out.err != nil && !interrupted(ctx, out.err) {
				found[i] = w.failure(name, out)
				w.tell(event.Event{
					Type: event.Failed, Host: name, Err: out.err, Duration: out.duration,
					Attempt: out.attempt, Attempts: out.attempts,
				})
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return none
	var failures []Failure
	for _, f := range found {
		if f != nil {
			failures = append(failures, *f)
		}
	}
	return failures
}

// errorOf is nil when nothing failed and ctx has not ended.
func (w *worker) errorOf(ctx context.Context, failures []Failure) error {
	if len(failures) == 0 && ctx.Err() == nil {
		return nil
	}
	return &Error{Intent: w.intent, Cluster: w.cluster, Failures: failures, Cause: context.Cause(ctx)}
}

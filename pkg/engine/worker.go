// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// worker is what everything that works for one run shares. It is safe for concurrent use.
type worker struct {
	o               Options
	id              string
	intent, cluster string
	values          *values
	redact          *redactor
	api             *api
	// stop is closed when no further attempt may begin.
	stop chan struct{}

	mu     sync.Mutex // guards what is below, and keeps events one after the other
	reader event.Reader
	closed bool
}

func (e *Engine) worker(intent, cluster string, reader event.Reader) *worker {
	r := &redactor{}
	return &worker{
		o: e.o, id: e.o.NewID(), intent: intent, cluster: cluster, reader: reader, redact: r,
		values: newValues(e.o.Secrets, r), api: &api{connect: e.o.Cluster}, stop: make(chan struct{}),
	}
}

// maxMessage is how long the message of an event may be, in bytes: some of it is what a host or a command has said.
const maxMessage = 8 << 10

// tell completes ev and gives it to the reader, without secrets. What comes after RunEnded is dropped: a step's
// straggling report of progress is of no interest then.
func (w *worker) tell(ev event.Event) {
	ev.Time, ev.Pipeline, ev.Intent = w.o.Clock.Now(), w.id, w.intent
	ev.Cluster, ev.Holder = w.cluster, w.o.Holder
	ev.Err = w.redact.err(ev.Err)
	if ev.Message == "" && ev.Err != nil {
		ev.Message = message(ev.Err)
	}
	ev.Message = host.Word(strings.Join(strings.Fields(w.redact.text(ev.Message)), " "), maxMessage)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = ev.Type == event.RunEnded
	w.reader.Read(ev)
}

// bounds are what opens and closes the stream of a run of p: a record of runs needs to know what was run on which hosts.
func bounds(p *plan.Plan) (started, ended event.Event) {
	digest, err := p.Digest()
	if err != nil {
		digest = "" // a plan that cannot be written cannot be compared with another either
	}
	return event.Event{Type: event.RunStarted, Plan: digest, Hosts: p.Hosts},
		event.Event{Type: event.RunEnded, Plan: digest, Hosts: p.Hosts}
}

// of places an event at a node.
func of(t event.Type, n plan.Node) event.Event {
	return event.Event{Type: t, Module: n.Module, Task: n.Task, Step: n.Name, Node: n.ID, Host: n.Host}
}

// pause waits for d, whether the run stops or not; false means that ctx has ended.
func (w *worker) pause(ctx context.Context, d time.Duration) bool {
	t := w.o.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// sleep waits for d; false means that the run has no use for another attempt.
func (w *worker) sleep(ctx context.Context, d time.Duration) bool {
	t := w.o.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return ctx.Err() == nil && !w.stopped()
	case <-ctx.Done():
		return false
	case <-w.stop:
		return false
	}
}

func (w *worker) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// delay before the attempt that follows the nth.
func (w *worker) delay(r step.Retry, n int) time.Duration {
	d, most := time.Duration(r.Delay), time.Duration(r.MaxDelay)
	if d <= 0 {
		d = time.Second
	}
	if most <= 0 {
		most = time.Minute
	}
	for ; n > 1 && d < most; n-- {
		d *= 2
	}
	return w.o.Jitter(min(d, most))
}

// runtime is what one attempt at n may use.
func (w *worker) runtime(n plan.Node, v step.View, made *outputs) *step.Runtime {
	meta := n.Meta()
	made.declared, made.redact = meta.Makes, w.redact
	return &step.Runtime{
		View: v, Task: taskOf(n), Run: w.id, Artifacts: w.o.Artifacts, Timeout: timeout(meta),
		Report: w.progress(n), Make: made.add,
	}
}

// taskOf names n's task for the undo store, where it stands without its host.
func taskOf(n plan.Node) string { return n.Module + "/" + n.Task }

func timeout(m step.Meta) time.Duration {
	if m.Timeout > 0 {
		return time.Duration(m.Timeout)
	}
	return step.DefaultTimeout
}

// progress tells of progress, not more often than a person can follow.
func (w *worker) progress(n plan.Node) func(done, total int64) {
	const every = 200 * time.Millisecond
	var mu sync.Mutex
	var last time.Time
	return func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if now := w.o.Clock.Now(); now.Sub(last) >= every || done == total {
			last = now
			ev := of(event.Progress, n)
			ev.Done, ev.Total = done, total
			w.tell(ev)
		}
	}
}

// outcome is what came of a node.
type outcome struct {
	// changed is false when the node was so already.
	changed bool
	// what was changed, for people.
	what              string
	attempt, attempts int
	duration          time.Duration
	err               error
}

// guard turns a panic of f into its error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}

// final reports whether another attempt cannot help: that takes somebody's doing.
func final(err error) bool {
	var p *Panic
	if errors.As(err, &p) {
		return true
	}
	k := host.KindOf(err)
	// A step's retries are for its own act; a host that somebody else works on is refused at once, and they are named.
	return k != "" && !k.Retryable() || k == host.KindLocked
}

// api connects to the cluster once, and again when that is asked for.
type api struct {
	connect func(context.Context) (step.Cluster, error)
	mu      sync.Mutex
	cluster step.Cluster
}

func (a *api) get(ctx context.Context) (step.Cluster, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cluster != nil {
		return a.cluster, nil
	}
	return a.dial(ctx)
}

// renew is the cluster by what is known of the way to it now: the host whose API server it led to may be gone, and another's be known
// of in its place. If that is nothing, it is the cluster as before.
func (a *api) renew(ctx context.Context) (step.Cluster, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, err := a.dial(ctx); err == nil || a.cluster == nil {
		return c, err
	}
	return a.cluster, nil
}

func (a *api) dial(ctx context.Context) (step.Cluster, error) {
	if a.connect == nil {
		return nil, errors.New("no access to the cluster's API is configured")
	}
	c, err := a.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster's API: %w", err)
	}
	a.cluster = c
	return c, nil
}

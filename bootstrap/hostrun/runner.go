// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// ErrStopped is the cause that ends all work when the manager stops.
var ErrStopped = errors.New("the manager stops")

// Job is work on one host.
type Job[R any] struct {
	// What says what the work is, in one word.
	What string
	// Of is the object that has it: another one may come to have its name.
	Of types.UID
	// Urgent work does not wait until other hosts are done. It is for what others wait for: a worker's run waits for the
	// API server while it holds its place.
	Urgent bool
	// Do does the work. It returns soon after ctx has ended. What it tells becomes State.Progress.
	Do func(ctx context.Context, tell event.Reader) R
	// Lost is the result when Do panics.
	Lost func(err error) R
}

// State is how far a job is.
type State[R any] struct {
	What string
	Of   types.UID
	// Started is when the job was given; Ended is zero while it goes on.
	Started, Ended time.Time
	Progress       Progress
	// Result is what Do returned.
	Result R
}

// Running reports whether the job goes on.
func (s *State[R]) Running() bool { return s.Ended.IsZero() }

// Runner runs at most one job per object.
type Runner[R any] struct {
	ctx      context.Context
	stop     context.CancelCauseFunc
	places   *semaphore.Weighted
	throttle time.Duration

	mu    sync.Mutex
	jobs  map[client.ObjectKey]*entry[R]
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
	going sync.WaitGroup
}

type entry[R any] struct {
	State[R]
	cancel context.CancelCauseFunc
}

// New returns a Runner for as many jobs at once, urgent ones not counted. An object is reconciled for its job's progress
// at most once in the time of throttle.
func New[R any](ctx context.Context, atOnce int, throttle time.Duration) *Runner[R] {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	return &Runner[R]{
		ctx: ctx, stop: stop, places: semaphore.NewWeighted(int64(atOnce)), throttle: throttle,
		jobs: make(map[client.ObjectKey]*entry[R]),
	}
}

// Start begins a job and reports whether it did: not while the object has one, ended or not, that is not forgotten.
func (r *Runner[R]) Start(key client.ObjectKey, job Job[R]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, found := r.jobs[key]; found || r.ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	e := &entry[R]{State: State[R]{What: job.What, Of: job.Of, Started: time.Now()}, cancel: cancel}
	r.jobs[key] = e
	r.going.Go(func() {
		defer cancel(nil)
		r.run(ctx, key, e, job)
	})
	return true
}

func (r *Runner[R]) run(ctx context.Context, key client.ObjectKey, e *entry[R], job Job[R]) {
	if !job.Urgent && r.places.Acquire(ctx, 1) == nil {
		defer r.places.Release(1)
	}
	// Do is called even if ctx has ended by now: it knows what it comes to then.
	result := r.guard(ctx, key, e, job)
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Result, e.Ended = result, time.Now()
	if r.queue != nil {
		r.queue.Add(ctrl.Request{NamespacedName: key})
	}
}

func (r *Runner[R]) guard(ctx context.Context, key client.ObjectKey, e *entry[R], job Job[R]) (result R) {
	defer func() {
		if p := recover(); p != nil {
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic: %v", p), "Work on a host panicked", "key", key, "what", job.What, "stack", string(debug.Stack()))
			result = job.Lost(fmt.Errorf("panic: %v", p))
		}
	}()
	return job.Do(ctx, event.ReaderFunc(func(ev event.Event) { r.tell(key, e, ev) }))
}

func (r *Runner[R]) tell(key client.ObjectKey, e *entry[R], ev event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Progress.read(ev) && r.queue != nil {
		r.queue.AddAfter(ctrl.Request{NamespacedName: key}, r.throttle)
	}
}

// Observe returns the state of an object's job, if it has one.
func (r *Runner[R]) Observe(key client.ObjectKey) (State[R], bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, found := r.jobs[key]
	if !found {
		return State[R]{}, false
	}
	return e.State, true
}

// Cancel stops an object's job, and reports whether one goes on still. The object is reconciled when the job has ended.
func (r *Runner[R]) Cancel(key client.ObjectKey, cause error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, found := r.jobs[key]
	if !found || !e.Running() {
		return false
	}
	e.cancel(cause)
	return true
}

// Disown stops a job that is not the object's of this UID, but of another one that had its name, and drops it once it has ended. It reports
// whether one goes on still; the object is reconciled when it has ended. Without a UID there is no such object any more.
func (r *Runner[R]) Disown(key client.ObjectKey, id types.UID, cause error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e, found := r.jobs[key]; {
	case !found || e.Of == id:
		return false
	case e.Running():
		e.cancel(cause)
		return true
	}
	delete(r.jobs, key)
	return false
}

// Forget drops what an object's job came to, so that the next can start. A job that goes on is left alone.
func (r *Runner[R]) Forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, found := r.jobs[key]; found && !e.Running() {
		delete(r.jobs, key)
	}
}

// Source reconciles objects when their jobs go on or end. One controller has it.
func (r *Runner[R]) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queue = queue
		return nil
	})
}

// Runnable ends all jobs when the manager stops, and waits for them.
func (r *Runner[R]) Runnable() manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		r.stop(ErrStopped)
		r.going.Wait()
		return nil
	})
}

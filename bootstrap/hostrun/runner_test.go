// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hostrun_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	one = client.ObjectKey{Namespace: "fleet", Name: "one"}
	two = client.ObjectKey{Namespace: "fleet", Name: "two"}
)

// start returns a Runner and its queue. All of it ends with the test.
func start(t *testing.T, atOnce int) (*hostrun.Runner[error], workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	t.Helper()
	r := hostrun.New[error](t.Context(), atOnce, time.Millisecond)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	if err := r.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Runnable().Start(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		queue.ShutDown()
	})
	return r, queue
}

// until waits for reconciles of an object until the condition holds.
func until(t *testing.T, queue workqueue.TypedRateLimitingInterface[ctrl.Request], key client.ObjectKey, holds func() bool) {
	t.Helper()
	for {
		request, stopped := queue.Get()
		if stopped {
			t.Fatal("the queue ended")
		}
		queue.Done(request)
		if request.NamespacedName == key && holds() {
			return
		}
	}
}

func ended(r *hostrun.Runner[error], key client.ObjectKey) func() bool {
	return func() bool {
		s, found := r.Observe(key)
		return found && !s.Running()
	}
}

func TestOneJobPerObject(t *testing.T) {
	r, queue := start(t, 1)
	result, release := errors.New("result"), make(chan struct{})
	job := hostrun.Job[error]{What: "Work", Do: func(context.Context, event.Reader) error { <-release; return result }}
	if !r.Start(one, job) || r.Start(one, job) {
		t.Fatal("the second job of an object must not start")
	}
	r.Forget(one) // must not drop what goes on
	if s, found := r.Observe(one); !found || !s.Running() || s.What != "Work" {
		t.Fatalf("state %+v, found %v", s, found)
	}
	close(release)
	until(t, queue, one, ended(r, one))
	if s, _ := r.Observe(one); !errors.Is(s.Result, result) {
		t.Errorf("result %v", s.Result)
	}
	if r.Start(one, job) {
		t.Error("a result that nobody took in must not be lost")
	}
	r.Forget(one)
	if _, found := r.Observe(one); found {
		t.Error("it is not forgotten")
	}
}

// TestAnotherObjectOfTheName: the job of an object that was removed is not that of the one which has its name now. It is stopped before
// another begins.
func TestAnotherObjectOfTheName(t *testing.T) {
	r, queue := start(t, 1)
	gone := errors.New("gone")
	stops := hostrun.Job[error]{Of: "1", Do: func(ctx context.Context, _ event.Reader) error { <-ctx.Done(); return context.Cause(ctx) }}
	for _, id := range []types.UID{"2", ""} {
		r.Start(one, stops)
		if r.Disown(one, "1", gone) || !r.Disown(one, id, gone) {
			t.Fatal("a job goes on that is another's, or none that is its own")
		}
		until(t, queue, one, ended(r, one))
		if s, _ := r.Observe(one); !errors.Is(s.Result, gone) || s.Of != "1" {
			t.Errorf("it ends with %v, of %s", s.Result, s.Of)
		}
		if r.Disown(one, "1", gone) {
			t.Error("it goes on")
		}
		if _, found := r.Observe(one); !found {
			t.Error("its own result is lost")
		}
		if r.Disown(one, id, gone) {
			t.Error("it goes on")
		}
		if s, found := r.Observe(one); found {
			t.Errorf("another's result is there: %+v", s)
		}
	}
}

func TestUrgentJobsDoNotWaitForAPlace(t *testing.T) {
	r, queue := start(t, 1)
	release := make(chan struct{})
	waits := func(context.Context, event.Reader) error { <-release; return nil }
	r.Start(one, hostrun.Job[error]{Do: waits}) // has the only place, and waits for what the urgent one does
	r.Start(two, hostrun.Job[error]{Urgent: true, Do: func(context.Context, event.Reader) error { close(release); return nil }})
	until(t, queue, two, ended(r, two))
	until(t, queue, one, ended(r, one))
}

func TestCancelAndStop(t *testing.T) {
	r, queue := start(t, 2)
	why := errors.New("paused")
	waits := func(ctx context.Context, _ event.Reader) error { <-ctx.Done(); return context.Cause(ctx) }
	r.Start(one, hostrun.Job[error]{Do: waits})
	r.Start(two, hostrun.Job[error]{Do: waits}) // is ended by the end of the manager
	if !r.Cancel(one, why) {
		t.Error("there was a job to cancel")
	}
	until(t, queue, one, ended(r, one))
	if s, _ := r.Observe(one); !errors.Is(s.Result, why) {
		t.Errorf("result %v, want the cause", s.Result)
	}
	if r.Cancel(one, why) {
		t.Error("there is nothing to cancel any more")
	}
}

func TestPanicIsAResult(t *testing.T) {
	r, queue := start(t, 1)
	r.Start(one, hostrun.Job[error]{
		Do:   func(context.Context, event.Reader) error { panic("defect") },
		Lost: func(err error) error { return err },
	})
	until(t, queue, one, ended(r, one))
	if s, _ := r.Observe(one); s.Result == nil {
		t.Error("the panic is lost")
	}
}

func TestProgress(t *testing.T) {
	r, queue := start(t, 1)
	release := make(chan struct{})
	r.Start(one, hostrun.Job[error]{Do: func(_ context.Context, tell event.Reader) error {
		tell.Read(event.Event{Type: event.HostObserved, Host: "w1", Done: 1, Total: 3})
		tell.Read(event.Event{Type: event.Started, Host: "w1", Task: "kubelet", Step: "kubelet/start"})
		tell.Read(event.Event{Type: event.Changed, Host: "w1"})
		tell.Read(event.Event{Type: event.Changed}) // on the controller: not the host's
		<-release
		return nil
	}})
	want := hostrun.Progress{Done: 2, Total: 3, Now: "kubelet kubelet/start"}
	until(t, queue, one, func() bool { s, _ := r.Observe(one); return s.Progress == want })
	close(release)
	until(t, queue, one, ended(r, one))
}

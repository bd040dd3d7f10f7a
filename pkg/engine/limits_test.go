// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// limited is a plan in which each host writes the file /a, tried three times if nothing else is said, within limits.
func limited(t *testing.T, limits plan.Limits, hosts ...string) *plan.Plan {
	t.Helper()
	b := plan.New("Test", "test")
	for _, h := range hosts {
		b.Host(h, plan.Module{Name: "os", Tasks: []plan.Task{{
			Name: "files", Limits: map[string]plan.Limits{"a": limits},
			Steps: []step.Step{step.New(step.Meta{Name: "a", Retry: step.Retry{Attempts: 3}}, step.File{Path: "/a", Mode: 0o644})},
		}}})
	}
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLimitOfTimeout(t *testing.T) {
	hosts := memories("n1")
	hosts["n1"].hold = make(chan struct{})
	_, err := engine.New(options(hosts, &cluster{}, nil)).Run(t.Context(),
		limited(t, plan.Limits{Timeout: step.Duration(10 * time.Millisecond), Attempts: 1}, "n1"))
	var late *engine.TimedOut
	if !errors.As(err, &late) || late.After != 10*time.Millisecond {
		t.Errorf("got %v, want a TimedOut after 10ms", err)
	}
}

func TestLimitOfAttempts(t *testing.T) {
	for _, tt := range []struct{ limit, fails, want int }{{0, 2, 3}, {1, 1, 0}, {2, 1, 2}, {2, 2, 0}, {5, 4, 5}} {
		hosts := memories("n1")
		hosts["n1"].faults = []fault{{op: "file /a", times: tt.fails, err: &host.Error{Kind: host.KindCommand, Message: "broken"}}}
		attempts := 0
		_, err := engine.New(options(hosts, &cluster{}, event.ReaderFunc(func(e event.Event) {
			if e.Type == event.Changed {
				attempts = e.Attempt
			}
		}))).Run(t.Context(), limited(t, plan.Limits{Attempts: tt.limit}, "n1"))
		if attempts != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("limited to %d attempts, of which %d fail, it was done by attempt %d (%v), want %d", tt.limit, tt.fails, attempts, err, tt.want)
		}
	}
}

// crowd are hosts whose acts begin and wait for leave, and a reader that tells of hosts that wait for their turn.
type crowd struct {
	hosts          map[string]*memory
	names          []string
	begun, waiting chan string
	leave          chan struct{}
}

func newCrowd(n int) *crowd {
	c := &crowd{hosts: memories(), begun: make(chan string, n), waiting: make(chan string, n), leave: make(chan struct{})}
	for i := range n {
		m := newMemory(fmt.Sprintf("n%d", i))
		m.hold, m.acting = c.leave, func() { c.begun <- m.name }
		c.hosts[m.name], c.names = m, append(c.names, m.name)
	}
	return c
}

// Read is event.Reader.
func (c *crowd) Read(e event.Event) {
	if e.Type == event.Waiting {
		c.waiting <- e.Host
	}
}

func (c *crowd) options() engine.Options { return options(c.hosts, &cluster{}, c) }

// await waits until so many hosts are in their acts and so many wait for their turn.
func (c *crowd) await(begun, waiting int) {
	for range begun {
		<-c.begun
	}
	for range waiting {
		<-c.waiting
	}
}

func TestLimitOfConcurrency(t *testing.T) {
	const all, most = 7, 3
	c := newCrowd(all)
	run := engine.New(c.options()).Start(t.Context(), limited(t, plan.Limits{Concurrency: most, Group: "step a"}, c.names...))
	c.await(most, all-most) // all that can begin have begun
	if len(c.begun) > 0 {
		t.Errorf("more than %d hosts have begun", most)
	}
	close(c.leave)
	if r, err := run.Wait(); err != nil || r.Total().Changed != all {
		t.Errorf("got %+v, %v", r.Total(), err)
	}
}

// TestWaitingForATurnTakesNoPlace: of two places for hosts, one is held by who acts; the other is not held by who waits.
func TestWaitingForATurnTakesNoPlace(t *testing.T) {
	c := newCrowd(2)
	c.hosts["free"] = newMemory("free")
	b := plan.New("Test", "test")
	for _, name := range append(c.names, "free") {
		file := step.New(step.Meta{Name: "a"}, step.File{Path: "/a", Mode: 0o644})
		task := plan.Task{Name: "files", Steps: []step.Step{file}}
		if name != "free" {
			task.Limits = map[string]plan.Limits{"a": {Concurrency: 1, Group: "step a"}}
		}
		b.Host(name, plan.Module{Name: "os", Tasks: []plan.Task{task}})
	}
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	o := c.options()
	o.HostsAtOnce = 2
	done, free := ended("free/os/files/a")
	o.Reader = event.Readers(done, c)
	run := engine.New(o).Start(t.Context(), p)
	<-free
	close(c.leave)
	if r, err := run.Wait(); err != nil || r.Total().Changed != 3 {
		t.Errorf("got %+v, %v", r.Total(), err)
	}
}

// TestSharedSlots: runs of several engines count together if they share slots, and not if these are another cluster's.
func TestSharedSlots(t *testing.T) {
	c := newCrowd(3)
	slots := engine.NewSlots()
	limits := plan.Limits{Concurrency: 1, Group: "step a"}
	var runs []*engine.Run
	start := func(name, scope string) {
		o := c.options()
		o.Slots = slots.In(scope)
		runs = append(runs, engine.New(o).Start(t.Context(), limited(t, limits, name)))
	}
	start("n0", "default/prod")
	c.await(1, 0)
	start("n1", "default/prod")
	c.await(0, 1)
	start("n2", "default/test")
	c.await(1, 0)
	close(c.leave)
	for _, run := range runs {
		if _, err := run.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// TestSlotsAreGivenBack by who fails, and who is cancelled while it waits: the next run finds them all.
func TestSlotsAreGivenBack(t *testing.T) {
	limits := plan.Limits{Concurrency: 1, Group: "step a", Attempts: 1}
	why := errors.New("the manager is shutting down")
	for _, policy := range []engine.Policy{engine.Stop, engine.UndoTask, engine.UndoRun} {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-%t", policy, cancelled), func(t *testing.T) {
				c := newCrowd(3)
				for _, m := range c.hosts {
					m.faults = []fault{{op: "file /a", times: 1, err: &host.Error{Kind: host.KindCommand, Message: "broken"}}}
				}
				o := c.options()
				o.Slots, o.Policy = engine.NewSlots(), policy
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				p := limited(t, limits, c.names...)
				run := engine.New(o).Start(ctx, p)
				c.await(1, 2)
				if cancelled {
					cancel(why)
				} else {
					close(c.leave)
				}
				if _, err := run.Wait(); err == nil || cancelled != errors.Is(err, why) {
					t.Errorf("the run ended with %v", err)
				}
				for _, m := range c.hosts {
					m.faults, m.hold, m.acting = nil, nil, nil
				}
				o.Reader = nil
				if r, err := engine.New(o).Run(t.Context(), p); err != nil || !r.Hosts[0].Facts.Paths["/a"].Exists {
					t.Errorf("the next run: %+v, %v", r.Total(), err)
				}
			})
		}
	}
}

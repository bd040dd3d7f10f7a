// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// A turn does not end under its host, however long a step takes.
func TestTurnIsRenewed(t *testing.T) {
	m := newMemory("n1")
	m.files = map[string]string{"/p": "1", "/ok": ""}
	m.hold = make(chan struct{})
	c := &cluster{renewed: func(version int) {
		if version == 5 {
			close(m.hold)
		}
	}}
	o := options(map[string]*memory{"n1": m}, c, &told{})
	o.TurnRenewal = time.Millisecond
	p, err := parsePlan("n1 m/t: change:/p=2 /p=2 /q=2 changed")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.New(o).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if c.turn != "" {
		t.Errorf("it is the turn of %s", c.turn)
	}
}

// Of hosts that are changed at once, in one process, one after the other is.
func TestTurnsOfOneProcess(t *testing.T) {
	hosts, c := map[string]*memory{}, &cluster{}
	var mu sync.Mutex
	in := map[string]bool{}
	for _, name := range []string{"n1", "n2", "n3"} {
		m := newMemory(name)
		m.files = map[string]string{"/p": "1", "/ok": ""}
		m.acting = func() {
			mu.Lock()
			defer mu.Unlock()
			in[name] = true
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.turn != name {
				t.Errorf("%s is changed in the turn of %q", name, c.turn)
			}
		}
		hosts[name] = m
	}
	p, err := parsePlan("n1 m/t: change:/p=2 /p=2 changed\nn2 m/t: change:/p=2 /p=2 changed\nn3 m/t: change:/p=2 /p=2 changed")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.New(options(hosts, c, &told{})).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if len(in) != 3 || c.turn != "" {
		t.Errorf("%v were changed, and it is the turn of %q", in, c.turn)
	}
}

// A run that is stopped with an open savepoint leaves the turn to its host, and its slot to others.
func TestTurnOfAStoppedRun(t *testing.T) {
	m := newMemory("n1")
	m.files = map[string]string{"/p": "1", "/ok": ""}
	c, slots := &cluster{}, engine.NewSlots()
	run := func(ctx context.Context) error {
		o := options(map[string]*memory{"n1": m}, c, event.ReaderFunc(func(event.Event) {}))
		o.Slots = slots
		p, err := parsePlan("n1 m/t: change:/p=2 /p=2 /q=2 changed")
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.New(o).Run(ctx, p)
		return err
	}
	ctx, stop := context.WithCancelCause(t.Context())
	errStop := errors.New("stopped")
	acts := 0
	m.acting = func() {
		if acts++; acts == 2 {
			stop(errStop)
		}
	}
	if err := run(ctx); !errors.Is(err, errStop) {
		t.Fatalf("got %v, want it stopped", err)
	}
	if c.turn != "n1" || m.files["/changing"] == "" {
		t.Fatalf("it is the turn of %q, want that of the host that is half way: %s", c.turn, m)
	}
	if err := run(t.Context()); err != nil || c.turn != "" {
		t.Errorf("%v, and it is the turn of %q", err, c.turn)
	}
}

// A host that waits for its turn while another one fails does not get it, where all that the run did is to be rolled back. What it waits
// for may be a host of the run, or one of another process.
func TestTurnOfARunThatStops(t *testing.T) {
	const inTurn = "m/t: change:/p=2 /p=2 changed\n"
	for name, test := range map[string]struct{ plan, turn, fails string }{
		"a host of the run has it": {"n0 " + inTurn + "n1 " + inTurn, "", "file /p"},
		"another process has it":   {"n0 " + inTurn + "n1 m/t: /q", "n9", "file /q"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(2)
			for _, m := range c.hosts {
				m.files = map[string]string{"/p": "1", "/ok": ""}
				m.faults = []fault{{op: test.fails, times: 1, err: &host.Error{Kind: host.KindCommand, Message: "asked to fail"}}}
				m.acting = nil
			}
			api := &cluster{turn: test.turn}
			o := c.options()
			o.Policy, o.Slots, o.Clock = engine.UndoRun, engine.NewSlots(), clock.RealClock{}
			o.Cluster = func(context.Context) (step.Cluster, error) { return api, nil }
			p := mustPlan(t, test.plan)
			run := engine.New(o).Start(t.Context(), p)
			c.await(0, 1)
			close(c.leave)
			report, err := run.Wait()
			if err == nil || !strings.Contains(err.Error(), "asked to fail") || strings.Contains(err.Error(), "the run has stopped") {
				t.Errorf("the run ended with %v", err)
			}
			if sum := report.Total(); sum.Failed != 1 || sum.Failed+sum.Changed+sum.Blocked+sum.Skipped != p.Graph().Len() {
				t.Errorf("got %+v", sum)
			}
			for _, m := range c.hosts {
				if m.files["/p"] != "1" || m.files["/q"] != "" || len(m.undo) > 0 || m.holder != "" {
					t.Errorf("%s was not rolled back:\n%s", m.name, m)
				}
			}
			if api.turn != test.turn {
				t.Errorf("it is the turn of %q", api.turn)
			}
			api.turn, o.Reader = "", nil
			for _, m := range c.hosts {
				m.faults = nil
			}
			if _, err := engine.New(o).Run(t.Context(), p); err != nil || api.turn != "" {
				t.Errorf("the next run: %v, and it is the turn of %q", err, api.turn)
			}
		})
	}
}

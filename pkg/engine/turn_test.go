// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
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

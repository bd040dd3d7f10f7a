// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// hanging is a host that is reached, and never finishes what hangs names: "observe", "begin", "undo".
type hanging struct {
	host.Host
	hangs string
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return &host.Error{Kind: host.KindTimeout, Host: "stuck", Message: "stopped", Err: ctx.Err()}
}

func (h hanging) Observe(ctx context.Context, q host.Query) (*host.Facts, error) {
	if h.hangs == "observe" {
		return nil, hang(ctx)
	}
	return h.Host.Observe(ctx, q)
}

func (h hanging) Begin(ctx context.Context, r host.Run) (host.Session, error) {
	if h.hangs == "begin" {
		return nil, hang(ctx)
	}
	s, err := h.Host.Begin(ctx, r)
	return hangingSession{s, h.hangs}, err
}

type hangingSession struct {
	host.Session
	hangs string
}

func (s hangingSession) Undo(ctx context.Context, scope host.Scope, report func(host.Undone)) error {
	if s.hangs == "undo" {
		return hang(ctx)
	}
	if s.hangs == "undo after some" {
		// Each within its time, all together not.
		for range 5 {
			select {
			case <-ctx.Done():
				return hang(ctx)
			case <-time.After(20 * time.Millisecond):
				report(host.Undone{Key: "file /a"})
			}
		}
	}
	return s.Session.Undo(ctx, scope, report)
}

// TestHostThatHangs: every exchange with a host has an end, which says what was not answered and for how long, and others are
// served meanwhile even where the host that hangs has the only place.
func TestHostThatHangs(t *testing.T) {
	changed := mustPlan(t, "stuck os/files: /a\nother os/files: /a")
	for name, test := range map[string]struct {
		hangs, says string
		do          func(context.Context, *engine.Engine) error
	}{
		"look": {"observe", "does not answer to an observation: it was not complete after 50ms", func(ctx context.Context, e *engine.Engine) error {
			facts, err := e.Look(ctx, []string{"stuck", "other"}, func(string) host.Query { return host.Query{} })
			if facts["other"] == nil {
				t.Error("the other host was not observed")
			}
			return err
		}},
		"check": {"observe", "does not answer to an observation", func(ctx context.Context, e *engine.Engine) error {
			_, err := e.Check(ctx, changed)
			return err
		}},
		"run": {"observe", "does not answer to an observation", func(ctx context.Context, e *engine.Engine) error {
			_, err := e.Run(ctx, changed)
			return err
		}},
		"undo": {"undo", "does not answer to the undo of an entry: it was not complete after 50ms", func(ctx context.Context, e *engine.Engine) error {
			_, err := e.Undo(ctx, engine.Undo{Intent: "Reset", Hosts: []string{"stuck", "other"}})
			return err
		}},
		"lock": {"begin", "does not answer to", func(ctx context.Context, e *engine.Engine) error {
			_, err := e.Undo(ctx, engine.Undo{Intent: "Reset", Hosts: []string{"stuck", "other"}})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := memories("stuck", "other")
			o := options(hosts, &cluster{}, nil)
			if test.hangs != "observe" {
				if _, err := engine.New(o).Run(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
			}
			dial := o.Dial
			o.Dial = func(ctx context.Context, name string) (host.Host, error) {
				h, err := dial(ctx, name)
				if name == "stuck" {
					return hanging{h, test.hangs}, err
				}
				return h, err
			}
			o.HostsAtOnce, o.ObserveTimeout, o.UndoEntryTimeout, o.UndoTimeout = 1,
				50*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond
			err := test.do(t.Context(), engine.New(o))
			var ee *engine.Error
			if !errors.As(err, &ee) || len(ee.Failures) != 1 || ee.Failures[0].Host != "stuck" {
				t.Fatalf("got %v, want the failure of the host that hangs alone", err)
			}
			if f := ee.Failures[0]; host.KindOf(f.Err) != host.KindNoAnswer || !strings.Contains(f.Error(), test.says) || f.Remedy == "" {
				t.Errorf("kind %s, remedy %q: %v", host.KindOf(f.Err), f.Remedy, f)
			}
		})
	}
}

// TestUndoHasTimeForEach: the time is for each entry, not for all.
func TestUndoHasTimeForEach(t *testing.T) {
	hosts := memories("n1")
	o := options(hosts, &cluster{}, nil)
	if _, err := engine.New(o).Run(t.Context(), mustPlan(t, "n1 os/files: /a")); err != nil {
		t.Fatal(err)
	}
	dial := o.Dial
	o.Dial = func(ctx context.Context, name string) (host.Host, error) {
		h, err := dial(ctx, name)
		return hanging{h, "undo after some"}, err
	}
	o.UndoEntryTimeout = 70 * time.Millisecond // of five that take 20 ms
	if _, err := engine.New(o).Undo(t.Context(), engine.Undo{Intent: "Reset", Hosts: []string{"n1"}}); err != nil {
		t.Error(err)
	}
}

// TestEventsAreClean: what a host says reaches no terminal with its control characters.
func TestEventsAreClean(t *testing.T) {
	hosts := memories("n1")
	hosts["n1"].faults = []fault{{op: "dial", times: 9, err: errors.New("\x1b]0;title\atext\x9b31m")}}
	reader := event.ReaderFunc(func(e event.Event) {
		if strings.ContainsAny(e.Message, "\x1b\a\u009b") {
			t.Errorf("%q", e.Message)
		}
	})
	if _, err := engine.New(options(hosts, &cluster{}, reader)).Run(t.Context(), mustPlan(t, "n1 os/files: /a")); err == nil {
		t.Error("the host cannot be reached")
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"strings"
	"sync"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Of two runs that want one host, the second is refused at once and told who the first is; looking is free. The first goes
// on as if nothing had been.
func TestTwoWriters(t *testing.T) {
	tr := newTrial(t)
	p := tr.plan(1)
	first, second := subject.options(nil), subject.options(nil)
	first.Holder, second.Holder = "the first of two", "the second of two"
	var once sync.Once
	// The first run waits here, with the host locked, until the second has been refused.
	first.Reader = event.ReaderFunc(func(ev event.Event) {
		if ev.Type != event.Changed {
			return
		}
		once.Do(func() {
			_, err := engine.New(second).Run(t.Context(), p)
			refused(t, "run", err, ev.Pipeline)
			_, err = engine.New(second).Undo(t.Context(), engine.Undo{Intent: "ResetNode", Hosts: p.Hosts})
			refused(t, "undo", err, ev.Pipeline)
			if _, err := engine.New(second).Check(t.Context(), p); err != nil {
				t.Errorf("check: %v", err)
			}
		})
	})
	tr.runUntil(first, p, "runtime/containerd/containerd/service")
	tr.reset(nil)
}

// refused demands an error that names the writer who holds the host.
func refused(t *testing.T, what string, err error, run string) {
	t.Helper()
	f := onlyFailure(t, err)
	text := f.Error()
	if host.KindOf(f.Err) != host.KindLocked || !strings.Contains(text, "the first of two") || !strings.Contains(text, run) {
		t.Errorf("%s: kind %q, without the holder or its run %s: %v", what, host.KindOf(f.Err), run, err)
	}
}

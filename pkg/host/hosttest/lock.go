// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// testLock is about two writers.
func testLock(t *testing.T, f Fixture) {
	r := newRig(t, f)
	first, second := r.dial(), r.dial()
	run := newRun()
	s := r.begin(first, run)
	_, err := second.Begin(r.ctx, newRun())
	if host.KindOf(err) != host.KindLocked || !strings.Contains(err.Error(), run.Holder) {
		t.Fatalf("the second writer got %v, want KindLocked that names %q", err, run.Holder)
	}
	r.do(s, file(r, "n", "t", "f", "x"))
	r.end(s)
	if _, err := s.Do(r.ctx, file(r, "n", "t", "f", "x")); err == nil {
		t.Error("an ended session still acts")
	}

	// The lock goes with the connection.
	r.begin(first, newRun())
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	s = r.begin(second, newRun())
	// A reader needs no lock.
	r.observe(r.dial(), host.Query{})
	r.undo(s, host.Scope{})
	r.end(s)
}

// testRefusals is about what must fail before anything is changed.
func testRefusals(t *testing.T, f Fixture) {
	r := newRig(t, f)
	h := r.dial()
	if _, err := h.Begin(r.ctx, host.Run{}); host.KindOf(err) != host.KindInvalid {
		t.Errorf("a run without id and holder: %v", err)
	}
	s := r.begin(h, newRun())
	_, err := s.Do(r.ctx, host.Act{Node: "n", Changes: []host.Change{
		host.File{Path: r.Dir + "/before", Mode: 0o644, Content: secret.New("x")},
		host.Block{Path: r.Dir + "/missing", Name: "b", Content: "x\n"},
		host.File{Path: r.Dir + "/after", Mode: 0o644, Content: secret.New("x")},
	}})
	errs := hostErrors(err)
	if len(errs) == 0 || errs[0].Kind != host.KindCommand || errs[0].Change != "block b of "+r.Dir+"/missing" {
		t.Fatalf("a block in a file that is not there: %v", err)
	}
	if got := content(r, h, "before"); got != "x" {
		t.Errorf("the change before the failed one: %q", got)
	}
	if got := content(r, h, "after"); got != "(absent)" {
		t.Errorf("the change after the failed one: %q", got)
	}
	if f := r.observe(h, host.Query{}); len(f.Journal) != 0 {
		t.Errorf("a failed act is in the journal: %v", f.Journal)
	}
	r.undo(s, host.Scope{})
	r.end(s)
}

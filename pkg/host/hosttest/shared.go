// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// testShared does several acts in one exchange.
func testShared(t *testing.T, fixture func(t *testing.T) Fixture) {
	t.Run("Done", func(t *testing.T) { sharedDone(newRig(t, fixture(t))) })
	t.Run("Failed", func(t *testing.T) { sharedFailed(newRig(t, fixture(t))) })
	if fixture(t).CutAt == nil {
		return
	}
	for n := 1; n <= maxBoundaries; n++ {
		whole := false
		t.Run(fmt.Sprintf("Cut%d", n), func(t *testing.T) { whole = sharedCut(newRig(t, fixture(t)), n) })
		if whole || t.Failed() {
			break
		}
	}
}

// shared are three acts of two tasks. done is called with the node of each that is done.
func shared(r *rig, done func(node string)) []host.Act {
	acts := []host.Act{file(r, "one", "t", "a/one", "1"), file(r, "two", "t", "two", "2"), file(r, "three", "u", "a/three", "3")}
	for i := range acts {
		acts[i].Digest = "digest of " + acts[i].Node
		acts[i].Done = func() { done(acts[i].Node) }
	}
	acts[2].Verify = paths("a/one", "two", "a/three")(r)
	acts[2].Verify.Merge(host.Query{Modules: []string{"no-such-module"}, Packages: []string{"no-such-package"}, Units: []string{"no-such.service"}})
	return acts
}

func sharedDone(r *rig) {
	h := r.dial()
	before := r.observe(h, paths("a", "two")(r))
	s := r.begin(h, newRun())
	var done []string
	f, err := s.Do(r.ctx, shared(r, func(node string) { done = append(done, node) })...)
	if err != nil {
		r.t.Fatal(explain(err))
	}
	if !slices.Equal(done, []string{"one", "two", "three"}) {
		r.t.Errorf("told to be done: %v", done)
	}
	for _, node := range done {
		if f.Journal[node].Digest != "digest of "+node {
			r.t.Errorf("the journal has of %s: %+v", node, f.Journal[node])
		}
	}
	for _, name := range []string{"a/one", "two", "a/three"} {
		if !f.Paths[r.Dir+"/"+name].Exists {
			r.t.Errorf("%s was not seen afterwards", name)
		}
	}
	// Each is undone by itself.
	r.undo(s, host.Scope{Task: "t"})
	if content(r, h, "two") != "(absent)" || content(r, h, "a/three") != "3" {
		r.t.Errorf("after the undo of one task: two is %q, three is %q", content(r, h, "two"), content(r, h, "a/three"))
	}
	r.undo(s, host.Scope{})
	r.end(s)
	if d := diff(stateOf(before), stateOf(r.observe(h, paths("a", "two")(r)))); d != "" {
		r.t.Errorf("not as before (-before +after):\n%s", d)
	}
}

func sharedFailed(r *rig) {
	h := r.dial()
	s := r.begin(h, newRun())
	var done []string
	acts := shared(r, func(node string) { done = append(done, node) })
	acts[1].Changes = append(acts[1].Changes, host.Block{Path: r.Dir + "/missing", Name: "b", Content: "x\n"})
	_, err := s.Do(r.ctx, acts...)
	errs := hostErrors(err)
	if len(errs) == 0 || errs[0].Kind != host.KindCommand || errs[0].Change != "block b of "+r.Dir+"/missing" {
		r.t.Fatalf("the second of three acts fails: %v", err)
	}
	if !slices.Equal(done, []string{"one"}) {
		r.t.Errorf("told to be done: %v", done)
	}
	f := r.observe(h, host.Query{})
	if len(f.Journal) != 1 || f.Journal["one"].Digest != "digest of one" {
		r.t.Errorf("the journal: %v", f.Journal)
	}
	if got := content(r, h, "a/three"); got != "(absent)" {
		r.t.Errorf("the act after the failed one: %q", got)
	}
	r.undo(s, host.Scope{})
	r.end(s)
}

// sharedCut reports whether all acts came through.
func sharedCut(r *rig, n int) (whole bool) {
	h := r.dial()
	query := paths("a", "a/one", "two", "a/three")(r)
	before := r.observe(h, query)
	run := newRun()
	doomed := r.dial()
	s := r.begin(doomed, run)
	told := map[string]bool{}
	r.CutAt(n)
	_, err := s.Do(r.ctx, shared(r, func(node string) { told[node] = true })...)
	r.CutAt(0)
	whole = err == nil
	_ = doomed.Close()
	journal := r.observe(h, host.Query{}).Journal
	for node := range told {
		if _, ok := journal[node]; !ok {
			r.t.Errorf("%s was told to be done and is not in the journal", node)
		}
	}
	if !whole && len(journal) == 3 {
		r.t.Error("all are in the journal, though one was cut")
	}
	if n%2 == 1 {
		run = newRun()
	}
	s = r.begin(h, run)
	if _, err := s.Do(r.ctx, shared(r, func(string) {})...); err != nil {
		r.t.Fatalf("cut at boundary %d and done again: %s", n, explain(err))
	}
	for name, want := range map[string]string{"a/one": "1", "two": "2", "a/three": "3"} {
		if got := content(r, h, name); got != want {
			r.t.Errorf("cut at boundary %d and done again: %s is %q", n, name, got)
		}
	}
	r.undo(s, host.Scope{})
	r.end(s)
	if d := diff(stateOf(before), stateOf(r.observe(h, query))); d != "" {
		r.t.Errorf("not as before (-before +after):\n%s", d)
	}
	return whole
}

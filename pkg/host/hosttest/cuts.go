// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// maxBoundaries is more than any act of the suite has.
const maxBoundaries = 100

// cutSeed draws where sampled cuts begin, the same ones in each run.
const cutSeed = 1

// testCuts kills the session at boundaries of each act and of its undo, and goes on with another session.
func testCuts(t *testing.T, fixture func(t *testing.T) Fixture) {
	f := fixture(t)
	every := max(f.CutEvery, 1)
	draw := rand.New(rand.NewPCG(cutSeed, 0))
	for _, k := range kinds(f) {
		if f.CutSystemOnly && !k.system {
			continue
		}
		firstDo, firstUndo := 1+draw.IntN(every), 1+draw.IntN(every)
		t.Run(k.name, func(t *testing.T) {
			parallel(t, fixture)
			for n := firstDo; n <= maxBoundaries; n += every {
				whole := false
				t.Run(fmt.Sprintf("Do%d", n), func(t *testing.T) { whole = k.cutDo(newRig(t, fixture(t)), n) })
				if whole || t.Failed() {
					break
				}
			}
			for n := firstUndo; n <= maxBoundaries; n += every {
				whole := false
				t.Run(fmt.Sprintf("Undo%d", n), func(t *testing.T) { whole = k.cutUndo(newRig(t, fixture(t)), n, nil) })
				if !whole && !t.Failed() {
					t.Run(fmt.Sprintf("UndoAndDo%d", n), func(t *testing.T) { k.cutUndo(newRig(t, fixture(t)), n, k.doAgain) })
				}
				if whole || t.Failed() {
					break
				}
			}
		})
	}
}

// cutDo reports whether the act came through: it has fewer boundaries than n.
func (k kind) cutDo(r *rig, n int) (whole bool) {
	t := r.t
	k.setUp(r)
	changes := k.changes(r)
	h := r.dial()
	before := r.observe(h, k.query(r))
	run := newRun()

	doomed := r.dial()
	s := r.begin(doomed, run)
	k.stage(r, s)
	r.CutAt(n)
	_, err := s.Do(r.ctx, k.act(r, changes))
	r.CutAt(0)
	whole = err == nil
	_ = doomed.Close()
	if !whole {
		seen := r.observe(h, k.query(r))
		if _, ok := seen.Journal[k.act(r, changes).Node]; ok {
			t.Error("the act is in the journal, though it was cut")
		}
	}

	// With an even n the next attempt belongs to the same run, with an odd one to another.
	if n%2 == 1 {
		run = newRun()
	}
	s = r.begin(h, run)
	k.stage(r, s)
	f := r.do(s, k.act(r, changes))
	if problem := k.made(r, f); problem != "" {
		t.Errorf("cut at boundary %d and done again: %s", n, problem)
	}
	r.end(s)
	if k.fill != nil {
		k.fill(r)
	}
	s = r.begin(h, newRun())
	r.undo(s, host.Scope{})
	r.end(s)
	k.compare(r, h, before)
	return whole
}

// doAgain makes the changes once more, as a run does: what the journal alone tells is only made when it does not say that it is made.
func (k kind) doAgain(r *rig, h host.Host, changes []host.Change) {
	a := k.act(r, changes)
	s := r.begin(h, newRun())
	if _, journaled := r.observe(h, host.Query{}).Journal[a.Node]; !journaled || !k.journaled {
		k.stage(r, s)
		f := r.do(s, a)
		if problem := k.made(r, f); problem != "" {
			r.t.Errorf("done again after its undo was cut: %s", problem)
		}
	}
	r.end(s)
	if k.fill != nil {
		k.fill(r)
	}
}

// cutUndo reports whether the undo came through. What comes between the cut and the next undo is between, if there is any.
func (k kind) cutUndo(r *rig, n int, between func(*rig, host.Host, []host.Change)) (whole bool) {
	k.setUp(r)
	changes := k.changes(r)
	h := r.dial()
	before := r.observe(h, k.query(r))
	s := r.begin(h, newRun())
	k.stage(r, s)
	r.do(s, k.act(r, changes))
	r.end(s)
	if k.fill != nil {
		k.fill(r)
	}

	doomed := r.dial()
	s = r.begin(doomed, newRun())
	r.CutAt(n)
	err := s.Undo(r.ctx, host.Scope{}, nil)
	r.CutAt(0)
	whole = err == nil
	_ = doomed.Close()

	if between != nil {
		between(r, h, changes)
	}
	s = r.begin(h, newRun())
	r.undo(s, host.Scope{})
	r.end(s)
	k.compare(r, h, before)
	return whole
}

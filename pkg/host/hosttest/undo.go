// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// file is an act that makes one file.
func file(r *rig, node, task, name, content string) host.Act {
	return host.Act{Node: node, Task: task, Digest: "d", Changes: []host.Change{
		host.File{Path: r.Dir + "/" + name, Mode: 0o644, Content: secret.New(content)},
	}}
}

func content(r *rig, h host.Host, name string) string {
	r.t.Helper()
	p := r.observe(h, host.Query{Paths: []host.PathQuery{{Path: r.Dir + "/" + name, Content: true}}}).Paths[r.Dir+"/"+name]
	if !p.Exists {
		return "(absent)"
	}
	return string(p.Content)
}

// testUndo is about which entries an undo takes, and in which order.
func testUndo(t *testing.T, fixture func(t *testing.T) Fixture) {
	t.Run("ScopeOfTask", func(t *testing.T) {
		r := newRig(t, fixture(t))
		h := r.dial()
		r.Put(t, r.Dir+"/f", "original", 0o644)
		s := r.begin(h, newRun())
		r.do(s, file(r, "n1", "t1", "f", "first"))
		r.do(s, file(r, "n2", "t2", "f", "second"))
		r.do(s, file(r, "n3", "t2", "sub/g", "third"))
		r.do(s, file(r, "n4", "t1", "sub/h", "fourth"))

		r.undo(s, host.Scope{Task: "t2"})
		if got := content(r, h, "f"); got != "first" {
			t.Errorf("after the undo of task t2: f is %q, want what task t1 made", got)
		}
		if got := content(r, h, "sub/g"); got != "(absent)" {
			t.Errorf("sub/g is %q", got)
		}
		if got := content(r, h, "sub/h"); got != "fourth" {
			t.Errorf("sub/h, of another task, is %q", got)
		}
		f := r.observe(h, host.Query{})
		if _, ok := f.Journal["n3"]; ok {
			t.Error("an undone node is still in the journal")
		}
		if _, ok := f.Journal["n4"]; !ok {
			t.Error("a node of another task has lost its journal entry")
		}
		r.undo(s, host.Scope{})
		r.end(s)
		if got := content(r, h, "f"); got != "original" {
			t.Errorf("after the undo of everything: f is %q", got)
		}
		// The directory was made by n3, undone while n4's file was in it; it must not be forgotten.
		if r.observe(h, host.Query{Paths: []host.PathQuery{{Path: r.Dir + "/sub"}}}).Paths[r.Dir+"/sub"].Exists {
			t.Error("the directory that we made is still there")
		}
	})

	t.Run("TheOldestWins", func(t *testing.T) {
		r := newRig(t, fixture(t))
		h := r.dial()
		r.Put(t, r.Dir+"/f", "original", 0o644)
		first := newRun()
		s := r.begin(h, first)
		r.do(s, file(r, "n", "t", "f", "one"))
		r.end(s)
		s = r.begin(h, newRun())
		f := r.do(s, file(r, "n", "t", "f", "two"))
		if f.UndoEntries != 2 {
			t.Errorf("two runs saved %d entries, want 2", f.UndoEntries)
		}
		r.end(s)
		if f := r.observe(h, host.Query{}); f.UndoEntries != 1 {
			t.Errorf("End left %d entries, want the older one alone", f.UndoEntries)
		}
		s = r.begin(h, newRun())
		if keys := r.undo(s, host.Scope{Run: "another"}); len(keys) != 0 {
			t.Errorf("the undo of a run that never was undid %q", keys)
		}
		if keys := r.undo(s, host.Scope{Run: first.ID}); !slices.Equal(keys, []string{"file " + r.Dir + "/f"}) {
			t.Errorf("undone %q", keys)
		}
		r.end(s)
		if got := content(r, h, "f"); got != "original" {
			t.Errorf("f is %q", got)
		}
		r.undoAll()
	})

	t.Run("AdoptedFileThatChanges", func(t *testing.T) { undoAdoptedFile(newRig(t, fixture(t))) })
	t.Run("ClaimedAgain", func(t *testing.T) { undoClaimedAgain(newRig(t, fixture(t))) })

	t.Run("Inherited", func(t *testing.T) {
		r := newRig(t, fixture(t))
		h := r.dial()
		r.Put(t, r.Dir+"/had/config", "theirs", 0o640)
		r.Put(t, r.Dir+"/file", "theirs", 0o644)
		inherit := host.Act{Node: "inherited", Task: "t", Digest: "d", Changes: []host.Change{
			host.Inherit{Paths: []string{r.Dir + "/had", r.Dir + "/file", r.Dir + "/later"}, Files: []string{r.Dir + "/new"}},
		}}
		s := r.begin(h, newRun())
		r.do(s, inherit)
		r.end(s)
		s = r.begin(h, newRun()) // as one that was cut before it was journaled
		r.do(s, inherit)
		r.end(s)
		if f := r.observe(h, host.Query{}); f.UndoEntries != 4 {
			t.Errorf("it saved %d entries, want 4", f.UndoEntries)
		}
		s = r.begin(h, newRun()) // what this makes goes with what was inherited, and not before
		r.do(s, file(r, "new", "t", "new", "ours"))
		r.end(s)
		if f := r.observe(h, host.Query{}); f.UndoEntries != 4 || content(r, h, "new") != "ours" {
			t.Errorf("with a new file it has %d entries, want 4", f.UndoEntries)
		}
		if got := content(r, h, "had/config") + content(r, h, "file") + content(r, h, "later"); got != "theirstheirs(absent)" {
			t.Errorf("it changed something: %q", got)
		}
		later := newRun()
		s = r.begin(h, later)
		r.do(s, file(r, "n", "t", "file", "ours"))
		r.undo(s, host.Scope{Run: later.ID})
		if got := content(r, h, "file"); got != "theirs" {
			t.Errorf("after the undo of a later run, the file is %q", got)
		}
		r.do(s, file(r, "n", "t", "had/config", "ours"))
		r.undo(s, host.Scope{})
		r.end(s)
		if got := content(r, h, "had/config") + content(r, h, "file") + content(r, h, "new"); got != "(absent)(absent)(absent)" {
			t.Errorf("the undo of everything left %q", got)
		}
		if r.observe(h, host.Query{Paths: []host.PathQuery{{Path: r.Dir + "/had"}}}).Paths[r.Dir+"/had"].Exists {
			t.Error("the directory is still there")
		}
	})
	if !fixture(t).FilesOnly {
		t.Run("InheritedUnit", func(t *testing.T) { undoInheritedUnit(newRig(t, fixture(t))) })
	}
	if !fixture(t).FilesOnly {
		t.Run("UnitLeft", func(t *testing.T) { undoUnitLeft(newRig(t, fixture(t))) })
		t.Run("UnitOfTwoRuns", func(t *testing.T) { undoUnitOfTwoRuns(newRig(t, fixture(t))) })
		t.Run("UnitGone", func(t *testing.T) { undoUnitGone(newRig(t, fixture(t))) })
		t.Run("UnitOfOneSession", func(t *testing.T) { undoUnitOfOneSession(newRig(t, fixture(t))) })
	}
	t.Run("ScopeWithoutATask", func(t *testing.T) {
		r := newRig(t, fixture(t))
		h := r.dial()
		run := newRun()
		s := r.begin(h, run)
		r.do(s, file(r, "n1", "t1", "f", "first"))
		r.do(s, file(r, "n2", "t2", "g", "second"))
		if keys := r.undo(s, host.Scope{Run: run.ID, Except: []string{"t1"}}); !slices.Equal(keys, []string{"file " + r.Dir + "/g"}) {
			t.Errorf("undone %q", keys)
		}
		f := r.observe(h, host.Query{})
		if _, ok := f.Journal["n1"]; !ok || len(f.Journal) != 1 {
			t.Errorf("the journal is %v, want what stays alone", f.Journal)
		}
		if got := content(r, h, "f"); got != "first" {
			t.Errorf("f, of the task that stays, is %q", got)
		}
		r.undo(s, host.Scope{})
		r.end(s)
		if got := content(r, h, "f"); got != "(absent)" {
			t.Errorf("after the undo of everything: f is %q", got)
		}
	})

	t.Run("ScopeFromANode", func(t *testing.T) {
		r := newRig(t, fixture(t))
		h := r.dial()
		r.Put(t, r.Dir+"/f", "original", 0o644)
		for i := range 3 {
			s := r.begin(h, newRun())
			r.do(s, file(r, fmt.Sprint("before", i), "t", fmt.Sprint("b", i), "new"))
			if i < 2 { // twice: the last counts
				r.do(s, host.Act{Node: "from", Task: "t", Digest: "d", Changes: []host.Change{
					file(r, "from", "t", "f", fmt.Sprint(i)).Changes[0], file(r, "from", "t", "from", fmt.Sprint(i)).Changes[0],
				}})
			}
			r.do(s, file(r, fmt.Sprint("after", i), "t", fmt.Sprint("a", i), "new"))
			if err := s.End(r.ctx, true); err != nil {
				t.Fatal(err)
			}
		}
		s := r.begin(h, newRun())
		if keys := r.undo(s, host.Scope{From: "another"}); len(keys) != 0 {
			t.Errorf("the undo from a node that was never begun undid %q", keys)
		}
		var want []string
		for _, name := range []string{"a2", "b2", "a1", "from", "f"} {
			want = append(want, "file "+r.Dir+"/"+name)
		}
		if keys := r.undo(s, host.Scope{From: "from"}); !slices.Equal(keys, want) {
			t.Errorf("undone %q, want %q", keys, want)
		}
		r.end(s)
		if got := content(r, h, "f"); got != "0" {
			t.Errorf("f is %q, not what the run before has made it", got)
		}
		if f := r.observe(h, host.Query{}); f.Journal["before1"].Run == "" || f.Journal["after0"].Run == "" || f.Journal["after1"].Run != "" {
			t.Errorf("the journal is %v: what was undone is not done", f.Journal)
		}
		r.undoAll()
	})

	t.Run("OnePathInManyForms", func(t *testing.T) {
		r := newRig(t, fixture(t))
		h := r.dial()
		r.Put(t, r.Dir+"/p", "original", 0o640)
		s := r.begin(h, newRun())
		r.do(s, host.Act{Node: "n1", Changes: []host.Change{host.Absent{Path: r.Dir + "/p"}}})
		r.do(s, host.Act{Node: "n2", Changes: []host.Change{host.Directory{Path: r.Dir + "/p", Mode: 0o755}}})
		r.do(s, file(r, "n3", "t", "p/inside", "x"))
		r.undo(s, host.Scope{Node: "n3"})
		r.undo(s, host.Scope{Node: "n2"})
		r.do(s, file(r, "n4", "t", "p", "a file"))
		r.do(s, file(r, "n5", "t", "p", "a file again"))
		r.undo(s, host.Scope{})
		r.end(s)
		if got := content(r, h, "p"); got != "original" {
			t.Errorf("p is %q", got)
		}
	})

	t.Run("EditsOfOthersInABlocksFileStay", func(t *testing.T) {
		r := newRig(t, fixture(t))
		h := r.dial()
		r.Put(t, r.Dir+"/hosts", "one\n", 0o644)
		s := r.begin(h, newRun())
		r.do(s, host.Act{Node: "n", Task: "t", Changes: []host.Change{host.Block{Path: r.Dir + "/hosts", Name: "b", Content: "ours\n"}}})
		r.Put(t, r.Dir+"/hosts", content(r, h, "hosts")+"theirs\n", 0o644)
		r.undo(s, host.Scope{})
		r.end(s)
		if got := content(r, h, "hosts"); got != "one\ntheirs\n" {
			t.Errorf("hosts is %q", got)
		}
	})
}

// undoAdoptedFile: of a file that has the content that it should have, the first run changes mode and owner alone, and the second, by
// another content, keeps what the user had. Both are needed.
func undoAdoptedFile(r *rig) {
	h := r.dial()
	r.Put(r.t, r.Dir+"/f", "theirs", 0o640)
	q := host.Query{Paths: []host.PathQuery{{Path: r.Dir + "/f", Content: true}}}
	before := r.observe(h, q)
	for _, text := range []string{"theirs", "ours", "ours again"} {
		s := r.begin(h, newRun())
		r.do(s, host.Act{Node: "n", Task: "t", Changes: []host.Change{
			host.File{Path: r.Dir + "/f", Mode: 0o755, Owner: r.Owner, Group: r.Group, Content: secret.New(text)},
		}})
		r.end(s)
	}
	s := r.begin(h, newRun())
	r.undo(s, host.Scope{})
	r.end(s)
	if d := diff(stateOf(before), stateOf(r.observe(h, q))); d != "" {
		r.t.Errorf("not as before (-before +after):\n%s", d)
	}
}

// undoClaimedAgain: a claim that is made again, by a run that does not know of the first, keeps nothing of what the path is filled with.
func undoClaimedAgain(r *rig) {
	h := r.dial()
	r.Put(r.t, r.Dir+"/had/config", "theirs", 0o640)
	for _, node := range []string{"n", "n", "other"} {
		s := r.begin(h, newRun())
		f := r.do(s, host.Act{Node: node, Task: "t", Changes: []host.Change{
			host.Claim{Paths: []string{r.Dir + "/had", r.Dir + "/data"}},
		}})
		if f.UndoEntries != 2 {
			r.t.Errorf("%d entries are recorded, want 2", f.UndoEntries)
		}
		r.Put(r.t, r.Dir+"/had/config", "ours", 0o640)
		r.Put(r.t, r.Dir+"/data/image", "ours", 0o640)
		if err := s.End(r.ctx, true); err != nil {
			r.t.Fatal(explain(err))
		}
	}
	r.undoAll()
	if got := content(r, h, "had/config") + content(r, h, "data/image"); got != "theirs(absent)" {
		r.t.Errorf("after the undo there is %q", got)
	}
}

// runningUnit has the test's unit run without us, not enabled, until the end of the test.
func (r *rig) runningUnit() {
	r.t.Helper()
	r.Put(r.t, unitFile, unitText, 0o644)
	r.t.Cleanup(func() { r.Remove(r.t, unitFile) })
	r.Start(r.t, unitName)
}

// undoUnitOfOneSession: systemd remembers that a unit which it has loaded is not enabled until it is reloaded, which a session does at its
// end. What a session enabled and does not keep is disabled nevertheless, by an undo and by a later act.
func undoUnitOfOneSession(r *rig) {
	h := r.dial()
	r.runningUnit()
	before := r.observe(h, unitQuery(r))
	s := r.begin(h, newRun())
	for _, enabled := range []string{"enabled", "disabled", "enabled"} {
		r.do(s, host.Act{Node: enabled, Changes: []host.Change{host.Unit{Name: unitName, Enabled: enabled, Active: "started"}}})
	}
	r.undo(s, host.Scope{})
	r.end(s)
	if d := diff(stateOf(before), stateOf(r.observe(h, unitQuery(r)))); d != "" {
		r.t.Errorf("not as before (-before +after):\n%s", d)
	}
	s = r.begin(h, newRun())
	r.do(s, host.Act{Node: "n", Changes: []host.Change{host.Unit{Name: unitName, Enabled: "enabled"}}})
	r.do(s, host.Act{Node: "m", Changes: []host.Change{host.Unit{Name: unitName, Enabled: "disabled"}}})
	r.end(s)
	if u := r.observe(h, unitQuery(r)).Units[unitName]; u.File != "disabled" || u.Active != "active" {
		r.t.Errorf("the unit is %+v after it was enabled and disabled", u)
	}
	r.undoAll()
}

// undoUnitLeft: a unit that something else restarts after its program was replaced is restarted with the program that came back, and one
// that nobody restarted is not.
func undoUnitLeft(r *rig) {
	h := r.dial()
	r.runningUnit()
	since := func() time.Time { return r.observe(h, unitQuery(r)).Units[unitName].Since }
	same := func(a, b time.Time) bool { return a.Sub(b).Abs() < 100*time.Millisecond } // reckoned from two clocks, at each look anew
	replace := host.Act{Node: "programs", Task: "t", Changes: []host.Change{
		host.Unit{Name: unitName, Active: "left"}, host.Unit{Name: "kubexm-not-there.service", Active: "left"},
		host.File{Path: r.Dir + "/program", Mode: 0o755, Content: secret.New("new")},
	}}
	r.Put(r.t, r.Dir+"/program", "old", 0o755)
	first := since()
	run := newRun()
	s := r.begin(h, run)
	if f := r.do(s, replace); f.UndoEntries != 2 {
		r.t.Errorf("%d entries are recorded, want the unit and the file", f.UndoEntries)
	}
	if !same(since(), first) {
		r.t.Error("a unit that was to be left was restarted")
	}
	r.undo(s, host.Scope{Run: run.ID})
	if !same(since(), first) {
		r.t.Error("the undo restarted a unit that nobody had restarted since")
	}
	r.do(s, replace)
	r.Start(r.t, unitName)
	second := since()
	if same(second, first) {
		r.t.Fatal("the unit was not restarted")
	}
	if keys := r.undo(s, host.Scope{Run: run.ID}); !slices.Contains(keys, "unit "+unitName) {
		r.t.Errorf("undone %q", keys)
	}
	if u := r.observe(h, unitQuery(r)).Units[unitName]; u.Active != "active" || same(u.Since, second) || content(r, h, "program") != "old" {
		r.t.Errorf("the unit is %s since %s, and was restarted at %s; the program is %q", u.Active, u.Since, second, content(r, h, "program"))
	}
	r.end(s)
	r.undoAll()
}

// undoUnitOfTwoRuns: a unit came with the first run and was restarted by a second one, which was interrupted, so that both have an entry
// of it. It goes with its file, and is not started again for having run in between.
func undoUnitOfTwoRuns(r *rig) {
	h := r.dial()
	before := r.observe(h, unitQuery(r))
	s := r.begin(h, newRun())
	r.do(s, host.Act{Node: "n", Changes: []host.Change{
		host.File{Path: unitFile, Mode: 0o644, Content: secret.New(unitText)}, host.Unit{Name: unitName, Enabled: "enabled", Active: "started"},
	}})
	r.end(s)
	s = r.begin(h, newRun())
	r.do(s, host.Act{Node: "n", Changes: []host.Change{host.Unit{Name: unitName, Enabled: "enabled", Active: "restarted"}}})
	if err := s.End(r.ctx, true); err != nil {
		r.t.Fatal(explain(err))
	}
	s = r.begin(h, newRun())
	r.undo(s, host.Scope{})
	r.end(s)
	if d := diff(stateOf(before), stateOf(r.observe(h, unitQuery(r)))); d != "" {
		r.t.Errorf("not as before (-before +after):\n%s", d)
	}
}

// undoUnitGone: a unit that was stopped and disabled has been removed by an administrator since, as with its package. The undo passes it
// over.
func undoUnitGone(r *rig) {
	h := r.dial()
	r.runningUnit()
	s := r.begin(h, newRun())
	r.do(s, host.Act{Node: "enable", Changes: []host.Change{host.Unit{Name: unitName, Enabled: "enabled"}}})
	r.do(s, host.Act{Node: "stop", Changes: []host.Change{host.Unit{Name: unitName, Enabled: "disabled", Active: "stopped"}}})
	r.end(s)
	r.Remove(r.t, unitFile)
	s = r.begin(h, newRun())
	r.undo(s, host.Scope{})
	r.end(s)
	if f := r.observe(h, unitQuery(r)); f.UndoEntries != 0 || f.Paths[unitFile].Exists {
		r.t.Errorf("after the undo there are %d entries, and its file is there: %v", f.UndoEntries, f.Paths[unitFile].Exists)
	}
}

// undoInheritedUnit has a unit that others run, and a later change of it: it goes on until the undo of everything, by which it is stopped
// and not started again.
func undoInheritedUnit(r *rig) {
	h := r.dial()
	r.runningUnit()
	before := r.observe(h, unitQuery(r)).Units[unitName]
	s := r.begin(h, newRun())
	r.do(s, host.Act{Node: "inherited", Changes: []host.Change{host.Inherit{Paths: []string{unitFile}, Units: []string{unitName, "kubexm-not-there.service"}}}})
	r.end(s)
	now := r.observe(h, unitQuery(r)).Units[unitName]
	if now.Since.Sub(before.Since).Abs() < 100*time.Millisecond { // reckoned from two clocks, at each look anew
		now.Since = before.Since
	}
	if now != before {
		r.t.Errorf("the unit was %+v and is %+v", before, now)
	}
	later := newRun()
	s = r.begin(h, later)
	r.do(s, host.Act{Node: "n", Changes: []host.Change{
		host.File{Path: unitFile, Mode: 0o644, Content: secret.New(unitText + "# ours\n")},
		host.Unit{Name: unitName, Enabled: "enabled", Active: "restarted"},
	}})
	r.end(s)
	s = r.begin(h, newRun())
	r.undo(s, host.Scope{})
	r.end(s)
	f := r.observe(h, unitQuery(r))
	if u := f.Units[unitName]; u.Active == "active" || u.File == "enabled" || f.Paths[unitFile].Exists {
		r.t.Errorf("after the undo of everything, the unit is %+v, and its file is there: %v", u, f.Paths[unitFile].Exists)
	}
}

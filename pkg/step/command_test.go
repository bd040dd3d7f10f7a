// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"slices"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// journaled is the journal in which this node was finished with an input.
func journaled(input string) map[string]host.JournalEntry {
	return map[string]host.JournalEntry{"node": {Run: "r1", Digest: input}}
}

func TestCommandIsDone(t *testing.T) {
	run := func(d step.Done) step.Command { return step.Command{Title: "x", Argv: []string{"x"}, Done: d} }
	both := paths("/a", regular("", 0o644))
	both.Units = map[string]host.UnitState{"a.service": {Active: "active"}}
	crashed := paths("/a", regular("", 0o644))
	crashed.Units = map[string]host.UnitState{"a.service": {Active: "failed"}}
	there := paths("/a", regular("", 0o644))
	there.Journal = journaled("other input")
	const does = `
		do command x ["x"] env [] stdin "" undo []`

	decide(t, []decision{
		{"never", run(step.Done{}), host.Facts{Journal: journaled("input")}, "command x: always → run" + does},
		{"path is there", run(step.Done{Paths: []string{"/a"}}), paths("/a", regular("", 0o644)), "so already"},
		{"path is not", run(step.Done{Paths: []string{"/a"}}), paths("/a", host.Path{}), "command x: /a is absent → run" + does},
		{"path and unit", run(step.Done{Paths: []string{"/a"}, Units: []string{"a.service"}}), both, "so already"},
		{"unit failed", run(step.Done{Paths: []string{"/a"}, Units: []string{"a.service"}}), crashed, "command x: a.service is failed → run" + does},
		{"not journaled", run(step.Done{Journaled: true}), host.Facts{}, "command x: not done yet → run" + does},
		{"journaled with other input", run(step.Done{Journaled: true}), host.Facts{Journal: journaled("other")}, "so already"},
		{"same input", run(step.Done{SameInput: true}), host.Facts{Journal: journaled("input")}, "so already"},
		{"other input", run(step.Done{SameInput: true}), host.Facts{Journal: journaled("other")}, "command x: done with another input → run" + does},
		{"path, but not by us", run(step.Done{Paths: []string{"/a"}, Journaled: true}), paths("/a", regular("", 0o644)), "command x: not done yet → run" + does},
		{"path and journal", run(step.Done{Paths: []string{"/a"}, Journaled: true}), there, "so already"},
		{"all of it goes to the host", step.Command{
			Title: "x", Argv: []string{"x", "y z"}, Env: []string{"A=b"}, Stdin: step.Secret("app", "password"), Undo: []string{"un", "x"},
		}, host.Facts{}, `command x: always → run
			do command x ["x" "y z"] env ["A=b"] stdin "hunter2" undo ["un" "x"]`},
	})
}

func TestCommandIsChecked(t *testing.T) {
	check := step.Done{Check: []string{"/bin/sh", "-c", "etcdctl member list"}, Units: []string{"etcd.service"}}
	run := step.Command{Title: "join", Argv: []string{"join"}, Done: check}
	id := run.Observe().Commands[0].ID
	told := func(exit int, stdout string) host.Facts {
		return host.Facts{
			Units:    map[string]host.UnitState{"etcd.service": {Active: "active"}},
			Commands: map[string]host.Result{id: {ExitCode: exit, Stdout: []byte(stdout), Stderr: []byte("for others")}},
		}
	}
	stopped := told(0, "")
	stopped.Units = nil
	const does = `
		do command join ["join"] env [] stdin "" undo []`

	decide(t, []decision{
		{"holds", run, told(0, "whatever it says"), "so already"},
		{"holds not, and says why in its first line", run, told(1, "\nit is a learner\nof yesterday\n"), "command join: it is a learner → run" + does},
		{"holds not, and says nothing", run, told(1, ""), "command join: not ready yet → run" + does},
		{"is not there", run, told(127, ""), "command join: not ready yet → run" + does},
		{"was not answered", run, host.Facts{Units: told(0, "").Units}, "command join: not ready yet → run" + does},
		{"all of it must hold", run, stopped, "command join: etcd.service is none → run" + does},
		{"and so must the journal", step.Command{Title: "join", Argv: []string{"join"}, Done: step.Done{Check: check.Check, Journaled: true}},
			told(0, ""), "command join: not done yet → run" + does},
	})

	// What one command is asked is asked once, and two are told apart.
	other := run
	other.Done = step.Done{Check: []string{"/bin/sh", "-c", "etcdctl alarm list"}}
	q := step.New(step.Meta{Name: "a"}, run, run, other).Observe()
	if len(q.Commands) != 2 || q.Commands[0].Argv[2] != "etcdctl member list" || q.Commands[0].ID == q.Commands[1].ID {
		t.Errorf("it asks %v", q.Commands)
	}
	// A sequence is done by it, whatever its parts say.
	s := step.New(step.Meta{Name: "etcd/join"}, step.Absent{Path: "/there"}, run).Until(step.Done{Check: check.Check})
	there := told(0, "")
	there.Paths = map[string]host.Path{"/there": regular("", 0o644)}
	decide(t, []decision{{"sequence", s, there, "so already"}})
}

func TestClaim(t *testing.T) {
	c := step.Claim{
		Paths: []string{"/a", "/b"}, Cleanup: []step.Cleanup{{Title: "first", Argv: []string{"1"}}, {Title: "second", Argv: []string{"2"}}},
	}
	decide(t, []decision{
		{"recorded", c, host.Facts{Journal: journaled("any input")}, "so already"},
		// Undo goes backwards: first, second, the paths.
		{"not recorded", c, host.Facts{}, `
			claim: not recorded → recorded
			do claim /a /b
			do command second [] env [] stdin "" undo ["2"]
			do command first [] env [] stdin "" undo ["1"]`},
		{"nothing but clean-up", step.Claim{Cleanup: c.Cleanup[:1]}, host.Facts{}, `
			claim: not recorded → recorded
			do command first [] env [] stdin "" undo ["1"]`},
	})
}

// store is one of no runtime.
var store = step.ImageStore{List: []string{"store", "list"}, Match: "name==", Load: []string{"store", "load"}, Name: []string{"store"}}

func TestImport(t *testing.T) {
	pause, etcd := step.Image{Ref: "r/pause:3", Digest: sha("pause"), Size: 1}, step.Image{Ref: "r/etcd:3", Digest: sha("etcd"), Size: 20}
	proxy := step.Image{Ref: "r/proxy:1", Digest: sha("proxy"), Size: 300}
	i := step.Import{Arch: "amd64", Images: []step.Image{pause, etcd, proxy}, Store: store}
	id := i.Observe().Commands[0].ID
	list := func(lines string) host.Facts {
		return host.Facts{Commands: map[string]host.Result{id: {Stdout: []byte("REF TYPE DIGEST SIZE PLATFORMS LABELS\n" + lines)}}}
	}
	row := func(m step.Image, digest string) string {
		return m.Ref + " application/vnd.oci.image.manifest.v1+json " + digest + " 8.1 MiB linux/amd64 io.cri-containerd.image=managed\n"
	}
	const does = "do command import images [\"store\" \"load\"] env [] stdin \"\" undo []"
	decide(t, []decision{
		{"all there", i, list(row(etcd, sha("etcd")) + row(pause, sha("pause")) + row(proxy, sha("proxy"))), "so already"},
		{"one is missing, one is another", i, list(row(pause, sha("pause")) + row(proxy, sha("old"))), `
			image r/etcd:3: none → ` + sha("etcd")[:15] + `
			image r/proxy:1: ` + sha("old")[:15] + ` → ` + sha("proxy")[:15] + `
			stream images [r/etcd:3 r/proxy:1] [` + sha("etcd") + " " + sha("proxy") + `] 320 B
			` + does},
		{"the runtime does not run", i, host.Facts{Commands: map[string]host.Result{id: {ExitCode: 1, Stderr: []byte("connection refused")}}}, `
			image r/pause:3: none → ` + sha("pause")[:15] + `
			image r/etcd:3: none → ` + sha("etcd")[:15] + `
			image r/proxy:1: none → ` + sha("proxy")[:15] + `
			stream images [r/pause:3 r/etcd:3 r/proxy:1] [` + sha("pause") + " " + sha("etcd") + " " + sha("proxy") + `] 321 B
			` + does},
	})
	// Two imports on one host ask two questions.
	var q host.Query
	q.Merge(i.Observe())
	q.Merge(step.Import{Arch: "amd64", Images: []step.Image{pause}, Store: store}.Observe())
	if len(q.Commands) != 2 {
		t.Errorf("two imports ask %v", q.Commands)
	}
}

// An image may have another name on the host, which moves from one image to the next without any being sent.
func TestImportNames(t *testing.T) {
	i := step.Import{Arch: "amd64", Images: []step.Image{{Ref: "r/proxy:2", Digest: sha("new"), Size: 300, As: "own/proxy:node"}}, Store: store}
	q := i.Observe().Commands[0]
	facts := func(named string) *host.Facts {
		table := "r/proxy:2 type " + sha("new") + "\n"
		if named != "" {
			table += "own/proxy:node type " + named + "\n"
		}
		return &host.Facts{Commands: map[string]host.Result{q.ID: {Stdout: []byte(table)}}}
	}
	for named, want := range map[string]string{sha("new"): "", sha("old"): sha("old")[:15], "": "none"} {
		v := step.View{Facts: facts(named)}
		d, err := i.Precheck(v)
		if err != nil || (len(d) == 0) != (want == "") || len(d) > 0 && (d[0].Subject != "image own/proxy:node" || d[0].From != want) {
			t.Errorf("named %q: %v, %v", named, d, err)
		}
		e, err := i.Effect(v)
		if err != nil || e.Stdin != nil || len(e.Changes) != len(d) {
			t.Errorf("named %q: %v, %v", named, e, err)
		}
		for _, c := range e.Changes {
			if got := c.(host.Command); !slices.Equal(got.Argv, []string{"store", "name", "r/proxy:2", "own/proxy:node"}) ||
				!slices.Equal(got.Undo, []string{"store", "undo", "r/proxy:2", "own/proxy:node"}) {
				t.Errorf("named %q: %v", named, got)
			}
		}
	}
	if !slices.Contains(q.Argv, "name==own/proxy:node") {
		t.Errorf("the store is asked %q", q.Argv)
	}
}

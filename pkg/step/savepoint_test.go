// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func TestSavepointDecides(t *testing.T) {
	is := func(paths ...string) host.Facts {
		f := host.Facts{Paths: map[string]host.Path{}}
		for _, p := range paths {
			f.Paths[p] = host.Path{Exists: true, Digest: "sha256:old"}
		}
		return f
	}
	c := step.Savepoint{
		Replaces: []step.Content{{Path: "/bin/a", Digest: "sha256:old"}, {Path: "/bin/b", Digest: "sha256:new"}}, InUse: "/node", Dir: "/under",
	}
	differs := "file /bin/b: sha256:old → sha256:new"
	for _, tt := range []struct {
		name  string
		facts host.Facts
		want  bool
	}{
		{"nothing is there", is(), false},
		{"the programs are not in use yet", is("/bin/a", "/bin/b"), false},
		{"a program in use is to be replaced", is("/bin/a", "/bin/b", "/node"), true},
		{"a program comes that was not there", is("/bin/a", "/node"), false},
		{"it is open", is("/bin/a", "/bin/b", "/node", "/under"), false},
	} {
		d, err := c.Precheck(step.View{Facts: &tt.facts})
		if err != nil || (len(d) > 0) != tt.want {
			t.Errorf("%s: %v, %v", tt.name, d, err)
		}
		more := c
		more.Before = []step.Command{{Title: "back up"}}
		if first, err := more.Precheck(step.View{Facts: &tt.facts}); err != nil ||
			tt.want != (len(first) == len(d)+1) || tt.want && first[0].Subject != "command back up" {
			t.Errorf("%s: with a command before: %v, %v", tt.name, first, err)
		}
		if tt.want && d[0].Subject+": "+d[0].From+" → "+d[0].To != differs {
			t.Errorf("%s: it differs by %v", tt.name, d)
		}
	}
	end := step.Commit{Dir: "/under"}
	for _, under := range []bool{true, false} {
		f := host.Facts{Paths: map[string]host.Path{"/under": {Exists: under}}}
		if d, err := end.Precheck(step.View{Facts: &f}); err != nil || (len(d) > 0) != under {
			t.Errorf("open %t: %v, %v", under, d, err)
		}
	}
}

// What it keeps comes back as it was, when it is cut too, and not after the end.
func TestSavepointKeeps(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("changed", "before", 0o600)
	write("removed", "before", 0o640)
	e, err := step.Savepoint{Dir: at("under"), Keeps: []string{at("changed"), at("removed"), at("made")}}.Effect(step.View{})
	if err != nil {
		t.Fatal(err)
	}
	begin, ok := e.Changes[0].(host.Command)
	if !ok {
		t.Fatalf("%T", e.Changes[0])
	}
	run := func(argv []string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	spoil := func() {
		t.Helper()
		write("changed", "after", 0o600)
		write("made", "after", 0o600)
		if err := os.Remove(at("removed")); err != nil {
			t.Fatal(err)
		}
	}
	want := func(name, text string, mode os.FileMode) {
		t.Helper()
		got, err := os.ReadFile(at(name))
		if err != nil || string(got) != text {
			t.Errorf("%s is %q (%v), want %q", name, got, err, text)
		}
		if info, err := os.Stat(at(name)); err == nil && info.Mode() != mode {
			t.Errorf("%s has mode %s, want %s", name, info.Mode(), mode)
		}
	}

	run(begin.Undo)                                           // before it ever ran
	if err := os.Mkdir(at("under.part"), 0o700); err != nil { // as one that was cut leaves it
		t.Fatal(err)
	}
	run(begin.Argv)
	spoil()
	run(begin.Argv) // again: what is kept is from before
	run(begin.Undo)
	want("changed", "before", 0o600)
	want("removed", "before", 0o640)
	if _, err := os.Stat(at("made")); !os.IsNotExist(err) {
		t.Errorf("what was not there before stays: %v", err)
	}
	if left, _ := filepath.Glob(at("under*")); left != nil {
		t.Errorf("it left %v", left)
	}

	run(begin.Argv)
	spoil()
	if err := os.RemoveAll(at("under")); err != nil { // the commit
		t.Fatal(err)
	}
	run(begin.Undo)
	want("changed", "after", 0o600)
}

// What comes before it is run first, and is not undone.
func TestSavepointBefore(t *testing.T) {
	e, err := step.Savepoint{Dir: "/under",
		Before: []step.Command{{Title: "back up", Argv: []string{"save"}, Timeout: step.Duration(time.Minute)}}}.Effect(step.View{})
	if err != nil {
		t.Fatal(err)
	}
	first, ok := e.Changes[0].(host.Command)
	if !ok || len(e.Changes) != 2 || first.Title != "back up" || first.Timeout != time.Minute || first.Undo != nil {
		t.Errorf("its changes are %+v", e.Changes)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func TestSequence(t *testing.T) {
	conf := step.File{Path: "/conf", Mode: 0o644, Content: step.Literal("x")}
	program := step.File{Path: "/bin/a", Mode: 0o755, From: &step.Artifact{Path: "bin/a", Digest: sha("elf"), Size: 3}}
	gone := step.Absent{Path: "/drop-in"}
	service := step.Service{Name: "a.service", Watches: []string{"/conf", "/bin/a", "/drop-in"}}
	run := step.Command{Title: "x", Argv: []string{"x"}, Done: step.Done{Paths: []string{"/done"}}}
	s := step.New(step.Meta{Name: "a/service"}, conf, program, gone, service, run)

	// facts are those of a host on which all is so, but for what change says.
	facts := func(change func(*host.Facts)) host.Facts {
		old := func(p host.Path) host.Path { p.Modified = now.Add(-2 * time.Hour); return p }
		f := unit(host.UnitState{Load: "loaded", Active: "active", File: "enabled", Since: now.Add(-time.Hour)}, nil)
		f.Paths = map[string]host.Path{
			"/conf": old(regular("x", 0o644)), "/bin/a": old(regular("elf", 0o755)), "/done": regular("", 0o644),
		}
		change(&f)
		return f
	}
	const restart = `
		do unit a.service enabled restarted settle 0s`

	decide(t, []decision{
		{"all is so", s, facts(func(*host.Facts) {}), "so already"},
		{"only what differs is done; what watches it restarts in the same act", s, facts(func(f *host.Facts) { delete(f.Paths, "/conf") }), `
			file /conf: absent → sha256:2d711642
			do file /conf 0644 : "x"` + restart},
		{"a mode is a change, too", s, facts(func(f *host.Facts) { f.Paths["/bin/a"] = regular("elf", 0o644) }), `
			file /bin/a: mode 0644 → mode 0755
			do file /bin/a 0755 : blob ` + sha("elf") + restart},
		{"a file that is watched and goes", s, facts(func(f *host.Facts) { f.Paths["/drop-in"] = regular("", 0o644) }), `
			path /drop-in: sha256:e3b0c442 → absent
			do path /drop-in` + restart},
		{"what was written before a cut", s, facts(func(f *host.Facts) {
			p := f.Paths["/conf"]
			p.Modified = now.Add(-time.Minute)
			f.Paths["/conf"] = p
		}), `
			unit a.service: older than /conf → restarted` + restart},
		{"it did not run: it is started, not restarted", s, facts(func(f *host.Facts) {
			delete(f.Paths, "/conf")
			f.Units["a.service"] = host.UnitState{Load: "loaded", Active: "inactive", File: "enabled"}
		}), `
			file /conf: absent → sha256:2d711642
			unit a.service: inactive → active
			do file /conf 0644 : "x"
			do unit a.service enabled started settle 0s`},
		{"in order", s, facts(func(f *host.Facts) { clear(f.Paths); clear(f.Units) }), `
			file /conf: absent → sha256:2d711642
			file /bin/a: absent → ` + sha("elf")[:15] + `
			unit a.service: none → enabled
			unit a.service: none → active
			command x: /done is absent → run
			stage bin/a
			do file /conf 0644 : "x"
			do file /bin/a 0755 : blob ` + sha("elf") + `
			do unit a.service enabled started settle 0s
			do command x ["x"] env [] stdin "" undo []`},
		{"what comes after the service restarts nothing", step.New(step.Meta{Name: "a"}, service, conf), facts(func(f *host.Facts) { delete(f.Paths, "/conf") }), `
			file /conf: absent → sha256:2d711642
			do file /conf 0644 : "x"`},
		{"sequences in sequences", step.New(step.Meta{Name: "b"}, step.New(step.Meta{Name: "a"}, conf), gone), facts(func(f *host.Facts) {
			delete(f.Paths, "/conf")
		}), `
			file /conf: absent → sha256:2d711642
			do file /conf 0644 : "x"`},
		{"two streams cannot be one act", step.New(step.Meta{Name: "a"},
			step.Import{Arch: "amd64", Images: []step.Image{{Ref: "r/a:1", Digest: sha("a")}}}, step.Import{
				Arch: "amd64", Images: []step.Image{{Ref: "r/b:1", Digest: sha("b")}},
			},
		), host.Facts{}, `
			image r/a:1: none → ` + sha("a")[:15] + `
			image r/b:1: none → ` + sha("b")[:15] + `
			do error: a: two parts stream; split the step`},
	})
}

func TestSequenceUntil(t *testing.T) {
	token := step.FromOutput(graph.Output[string]{Name: "token"})
	join := step.New(step.Meta{Name: "a/join"},
		step.File{Path: "/conf", Mode: 0o600, Content: token},
		step.Command{Title: "join", Argv: []string{"join"}, Done: step.Done{Paths: []string{"/joined"}}},
	).Until(step.Done{Paths: []string{"/joined"}, Journaled: true})
	done := paths("/joined", regular("", 0o644))
	done.Journal = journaled("other input")

	decide(t, []decision{
		{"done: its inputs are of no interest", join, done, "so already"},
		{"not done: they are needed", join, paths("/joined", host.Path{}), `
			a/join: /joined is absent → done
			do error: output token: not known yet`},
		{"cut after the command", step.New(step.Meta{Name: "a/join"}, join.Parts[1]).Until(*join.Done), paths("/joined", regular("", 0o644)), `
			a/join: not done yet → done`},
	})
}

func TestSequenceMeta(t *testing.T) {
	token := graph.Output[string]{Name: "token"}
	s := step.New(step.Meta{Name: "a", Takes: []string{"api"}, Makes: []string{"done"}},
		step.File{Path: "/a", Content: step.Join(step.FromOutput(token), step.Literal("x"), step.FromOutput(token))},
		step.Await{For: "api", Output: "ready"},
		step.Apply{Manifest: step.FromOutput(token), After: []string{"api", "crds"}},
	)
	m := s.Meta()
	if want := []string{"api", "token", "crds"}; !slices.Equal(m.Takes, want) {
		t.Errorf("takes %q, want %q", m.Takes, want)
	}
	if want := []string{"done", "ready"}; !slices.Equal(m.Makes, want) {
		t.Errorf("makes %q, want %q", m.Makes, want)
	}
	if len(s.About.Takes) != 1 {
		t.Error("asking what it takes has changed the step")
	}
}

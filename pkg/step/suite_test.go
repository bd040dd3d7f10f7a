// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// rig is a host on which the generic kinds are tried by the real engine: in memory, or a real one.
type rig struct {
	dial func(ctx context.Context) (host.Host, error)
	// put makes a file of root's, and its parents.
	put func(t *testing.T, path, content string)
	// real says that commands run, and that units tell when they were started.
	real bool
	// also are steps for this kind of host.
	also []step.Step
}

// program is an artifact, and secretFile a secret that is larger than any pipe, page or argument list.
const program = "#!/bin/sh\nexec sleep infinity\n"

var secretFile = bytes.Repeat([]byte("0123456789abcde\n"), 10<<20/16)

// in is where the suite works.
const in = "/srv/steps"

// desired is what the suite makes of a host; version is in what the service reads.
func (r *rig) desired(version string) []step.Step {
	service := step.Service{Name: "steps.service"}
	if r.real {
		service.Watches, service.Settle = []string{in + "/bin/steps", in + "/conf"}, step.Duration(300*time.Millisecond)
	}
	return append([]step.Step{
		step.New(step.Meta{Name: "claim/data"}, step.Claim{
			Paths:   []string{in + "/data", in + "/empty", in + "/new"},
			Cleanup: []step.Cleanup{{Title: "clean up", Argv: []string{"rm", "-rf", in + "/elsewhere"}}},
		}),
		step.New(step.Meta{Name: "files/write"},
			step.Directory{Path: in + "/private", Mode: 0o700},
			step.File{Path: in + "/private/password", Mode: 0o600, Content: step.Join(step.Literal("pw="), step.Secret("app", "password"))},
			step.File{Path: in + "/private/large", Mode: 0o600, Content: step.Secret("app", "large")},
			step.File{Path: in + "/replaced", Mode: 0o640, Content: step.Literal("ours\n")},
			step.File{Path: in + "/deep/er/file", Mode: 0o644, Content: step.Literal("")},
			step.Absent{Path: in + "/unwanted"},
			step.Block{Path: in + "/shared", Name: "steps", Content: "ours\nand ours\n"},
		),
		step.New(step.Meta{Name: "sysctl/set"}, step.Sysctl{Name: "net.ipv4.ip_default_ttl", Value: "65"}),
		step.New(step.Meta{Name: "program/install"},
			step.Programs(in+"/bin", []step.Artifact{{Path: "bin/steps", Digest: sha(program), Size: int64(len(program))}})...),
		step.New(step.Meta{Name: "service/run"},
			step.File{Path: in + "/conf", Mode: 0o644, Content: step.Literal(version)},
			step.File{Path: "/etc/systemd/system/steps.service", Mode: 0o644, Content: step.Literal(
				"[Service]\nExecStart=" + in + "/bin/steps\n[Install]\nWantedBy=multi-user.target\n")},
			service,
		),
		step.New(step.Meta{Name: "service/stop"}, step.Service{Name: "not-there.service", State: step.Stopped}),
		step.New(step.Meta{Name: "command/run"}, step.Command{
			Title: "fill", Argv: []string{"/bin/sh", "-ec", "cat >" + in + "/data/filled; mkdir " + in + "/new"},
			Stdin: step.Secret("app", "password"), Done: step.Done{Journaled: true},
		}),
		step.New(step.Meta{Name: "command/undo"}, step.Command{
			Title: "mark", Argv: []string{"touch", in + "/marked"}, Undo: []string{"rm", "-f", in + "/marked"}, Done: step.Done{SameInput: true},
		}),
	}, r.also...)
}

// before is what is there before us.
func (r *rig) before(t *testing.T) {
	r.put(t, in+"/replaced", "theirs\n")
	r.put(t, in+"/unwanted/a", "a")
	r.put(t, in+"/unwanted/b/c", "c")
	r.put(t, in+"/shared", "first\nlast\n")
	r.put(t, in+"/data/theirs", "theirs")
}

func (r *rig) plan(t *testing.T, version string) *plan.Plan {
	t.Helper()
	b := plan.New("Steps", "test")
	b.Host("h", plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: r.desired(version)}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// contents are artifacts in memory.
type contents map[string]string

func (c contents) Open(_ context.Context, a step.Artifact) (io.ReadCloser, error) {
	text, ok := c[a.Digest]
	if !ok {
		return nil, errors.New("there is no such artifact")
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func (r *rig) engine(t *testing.T) *engine.Engine {
	return engine.New(engine.Options{
		Dial: func(ctx context.Context, _ string) (host.Host, error) { return r.dial(ctx) },
		Secrets: func(ref step.SecretRef) ([]byte, error) {
			if ref.Key == "large" {
				return secretFile, nil
			}
			return []byte("hunter2"), nil
		},
		Artifacts: contents{sha(program): program},
		Holder:    "steps",
		Jitter:    func(time.Duration) time.Duration { return 0 },
		Reader: event.ReaderFunc(func(ev event.Event) {
			if text := fmt.Sprintf("%+v %v", ev, ev.Err); strings.Contains(text, "hunter2") {
				t.Errorf("an event tells the secret: %s", text)
			}
		}),
	})
}

// run converges and wants so many steps changed.
func (r *rig) run(t *testing.T, version string, changed int) engine.Report {
	t.Helper()
	report, err := r.engine(t).Run(t.Context(), r.plan(t, version))
	if err != nil {
		var e *engine.Error
		if errors.As(err, &e) {
			t.Fatalf("%+v", e)
		}
		t.Fatal(err)
	}
	if got := report.Total().Changed; changed >= 0 && got != changed {
		t.Errorf("%d steps were changed, want %d", got, changed)
	}
	return report
}

// seen is all of the host that the suite touches.
func (r *rig) seen(t *testing.T) *host.Facts {
	t.Helper()
	h, err := r.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	q := host.Query{Paths: []host.PathQuery{{Path: in + "/marked"}, {Path: host.StateDir}}}
	for _, s := range r.desired("") {
		q.Merge(s.Observe())
	}
	for _, p := range []string{"/unwanted/a", "/unwanted/b/c", "/shared", "/data", "/data/theirs",
		"/data/filled", "/empty", "/new", "/deep", "/deep/er", "/bin", "/private"} {
		q.Paths = append(q.Paths, host.PathQuery{Path: in + p, Digest: true})
	}
	f, err := h.Observe(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// state is what must be after an undo as it was before.
func state(f *host.Facts) host.Facts {
	s := host.Facts{Paths: map[string]host.Path{}, Blocks: f.Blocks,
		Units: map[string]host.UnitState{}, Sysctls: f.Sysctls, Packages: f.Packages,
		System: host.System{Swap: f.System.Swap}}
	for name, p := range f.Paths {
		if p.Mode.IsDir() {
			p.Modified, p.Size = time.Time{}, 0 // what came and went in it is seen there
		}
		s.Paths[name] = p
	}
	for name, u := range f.Units {
		s.Units[name] = host.UnitState{Load: u.Load, Active: u.Active, File: u.File}
	}
	return s
}

// undoAll undoes everything and wants the host as it was.
func (r *rig) undoAll(t *testing.T, before *host.Facts) {
	t.Helper()
	if _, err := r.engine(t).Undo(t.Context(), engine.Undo{Hosts: []string{"h"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(state(before), state(r.seen(t)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("after the undo, it is not as it was:\n%s", diff)
	}
}

// testSteps is the suite.
func testSteps(t *testing.T, r *rig) {
	r.before(t)
	before := r.seen(t)

	n := len(r.desired(""))
	const fine = 1 // service/stop: the unit is not there
	r.run(t, "1", n-fine)
	r.wantDesired(t)
	if again := r.run(t, "1", 0); again.Hosts[0].Exchanges != 1 {
		t.Errorf("a host on which all is so cost %d exchanges", again.Hosts[0].Exchanges)
	}
	if r.real {
		r.testRestarts(t)
	}
	r.undoAll(t, before)
}

// wantDesired observes the host itself, not what steps say of it.
func (r *rig) wantDesired(t *testing.T) {
	t.Helper()
	f := r.seen(t)
	for name, want := range map[string]host.Path{
		in + "/private":          tree(0o700),
		in + "/private/password": regular("pw=hunter2", 0o600),
		in + "/private/large":    regular(string(secretFile), 0o600),
		in + "/replaced":         regular("ours\n", 0o640),
		in + "/deep/er":          tree(0o755),
		in + "/unwanted":         {},
		in + "/shared":           regular("first\nlast\n# BEGIN kubexm steps\nours\nand ours\n# END kubexm steps\n", 0o644),
		in + "/bin/steps":        regular(program, 0o755),
	} {
		have := f.Paths[name]
		if have.Exists != want.Exists || have.Mode != want.Mode || have.Digest != want.Digest || have.Target != want.Target {
			t.Errorf("%s is %+v, want %+v", name, have, want)
		}
	}
	if got := f.Sysctls["net.ipv4.ip_default_ttl"]; got != "65" {
		t.Errorf("the sysctl is %s", got)
	}
	if got := f.Units["steps.service"]; got.Active != "active" || got.File != "enabled" {
		t.Errorf("the service is %+v", got)
	}
	if filled := f.Paths[in+"/data/filled"]; r.real && filled.Digest != sha("hunter2") {
		t.Errorf("the command has made %+v", filled)
	}
}

// testRestarts changes what a service reads: by a run, and by a hand of which no run knows.
func (r *rig) testRestarts(t *testing.T) {
	since := func() time.Time { return r.seen(t).Units["steps.service"].Since }
	first := since()
	r.run(t, "2", 1)
	second := since()
	if !second.After(first) {
		t.Errorf("its configuration was changed, and it runs since %s as before", first)
	}
	r.put(t, in+"/bin/steps", program) // the same, but later
	if mode := r.seen(t).Paths[in+"/bin/steps"].Mode; mode == fs.FileMode(0o755) {
		t.Fatal("the test needs a file that differs")
	}
	r.run(t, "2", 2) // program/install gives it its mode, service/run restarts
	if third := since(); !third.After(second) {
		t.Errorf("its program was written, and it runs since %s as before", second)
	}
	r.run(t, "2", 0)
}

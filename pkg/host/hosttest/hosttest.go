// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hosttest is what every implementation of host.Host must pass. The suite makes each kind of change on a host, undoes
// it, and kills the session at each boundary in between; the same tests run against memory and against real hosts.
package hosttest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Fixture is one host under test. Its host holds no state of ours, and again after each test.
type Fixture struct {
	// Dial connects to the host. The suite closes what it dials.
	Dial func(t *testing.T) host.Host
	// CutAt has sessions begun by any connection killed on the far side at the nth boundary of an act or undo; 0 ends that.
	// Without it the suite cuts nothing.
	CutAt func(n int)
	// CutEvery is for where each cut takes long: of the boundaries of an act or undo one of so many is cut, the first drawn by
	// a fixed seed. 0 and 1 are all. A kind with fewer boundaries may get no cut.
	CutEvery int
	// CutSystemOnly leaves the cuts of changes to files to another fixture of the same implementation.
	CutSystemOnly bool
	// Dir exists and is empty; the suite works in it.
	Dir string
	// StateDir is host.StateDir if empty.
	StateDir string
	// Owner is an account of the host beside root, and Group its group.
	Owner, Group string
	// IDs are their numbers.
	IDs func(t *testing.T) (uid, gid uint32)
	// Put makes a file of root's (parents exist), Link a symbolic link, Remove a path not be, Start a unit start anew: what others do.
	Put    func(t *testing.T, path, content string, mode fs.FileMode)
	Link   func(t *testing.T, path, target string)
	Remove func(t *testing.T, path string)
	Start  func(t *testing.T, unit string)
	// Sysctl is a parameter that may be set to 0 and to 1.
	Sysctl string
	// FilesOnly says that units, sysctls and swap are not to be touched: the host is a directory of somebody's machine.
	FilesOnly bool
	// Packages is not empty where the suite is to be of packages: one that the host can install, and after it those that come with it.
	Packages []string
	// Parallel says that the fixtures of two tests have nothing to do with each other.
	Parallel bool
	// Commands says that commands run, or that what they do is played.
	Commands bool
	// Machine says that commands run: a real kernel, process list and file systems.
	Machine bool
}

// RunPackages tests how packages are installed and removed, on a host whose fixture names some that it can install.
func RunPackages(t *testing.T, fixture func(t *testing.T) Fixture) {
	t.Run("Kinds", func(t *testing.T) { testKinds(t, fixture) })
	t.Run("Cuts", func(t *testing.T) { testCuts(t, fixture) })
}

// Run tests one implementation. fixture is called for each test.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	t.Run("Kinds", func(t *testing.T) { testKinds(t, fixture) })
	if fixture(t).CutAt != nil {
		t.Run("Cuts", func(t *testing.T) { testCuts(t, fixture) })
	}
	t.Run("Shared", func(t *testing.T) { testShared(t, fixture) })
	t.Run("Undo", func(t *testing.T) { testUndo(t, fixture) })
	t.Run("Owner", func(t *testing.T) { testOwner(t, fixture) })
	t.Run("Serial", func(t *testing.T) { testSerial(t, fixture) })
	t.Run("Lock", func(t *testing.T) { testLock(t, fixture(t)) })
	t.Run("Stage", func(t *testing.T) { testStage(t, fixture) })
	t.Run("Refusals", func(t *testing.T) { testRefusals(t, fixture(t)) })
	if fixture(t).Commands {
		t.Run("Queries", func(t *testing.T) { testQueries(newRig(t, fixture(t))) })
	}
	if fixture(t).Machine {
		t.Run("Machine", func(t *testing.T) { testMachine(t, fixture) })
	}
}

func parallel(t *testing.T, fixture func(t *testing.T) Fixture) {
	if fixture(t).Parallel {
		t.Parallel()
	}
}

// timeout of one test; reached only when something hangs.
const timeout = 2 * time.Minute

// rig is a fixture in use by one test.
type rig struct {
	Fixture
	t   *testing.T
	ctx context.Context
}

func newRig(t *testing.T, f Fixture) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return &rig{Fixture: f, t: t, ctx: ctx}
}

// dial connects, until the end of the test.
func (r *rig) dial() host.Host {
	r.t.Helper()
	h := r.Dial(r.t)
	r.t.Cleanup(func() { _ = h.Close() })
	return h
}

var runs atomic.Int64

// newRun is a run that nobody had before.
func newRun() host.Run {
	n := runs.Add(1)
	return host.Run{ID: fmt.Sprintf("run %d-%d", time.Now().UnixNano(), n), Holder: fmt.Sprintf("hosttest %d", n)}
}

func (r *rig) begin(h host.Host, run host.Run) host.Session {
	r.t.Helper()
	s, err := h.Begin(r.ctx, run)
	if err != nil {
		r.t.Fatalf("Begin: %v", explain(err))
	}
	return s
}

func (r *rig) do(s host.Session, a host.Act) *host.Facts {
	r.t.Helper()
	f, err := s.Do(r.ctx, a)
	if err != nil {
		r.t.Fatalf("Do %s: %v", a.Node, explain(err))
	}
	return f
}

func (r *rig) undo(s host.Session, scope host.Scope) []string {
	r.t.Helper()
	var keys []string
	err := s.Undo(r.ctx, scope, func(u host.Undone) { keys = append(keys, u.Key) })
	if err != nil {
		r.t.Fatalf("Undo: %v", explain(err))
	}
	return keys
}

func (r *rig) end(s host.Session) {
	r.t.Helper()
	if err := s.End(r.ctx, false); err != nil {
		r.t.Fatalf("End: %v", explain(err))
	}
}

func (r *rig) observe(h host.Host, q host.Query) *host.Facts {
	r.t.Helper()
	f, err := h.Observe(r.ctx, q)
	if err != nil {
		r.t.Fatalf("Observe: %v", explain(err))
	}
	return f
}

// undoAll undoes everything, for tests that are about something else.
func (r *rig) undoAll() {
	r.t.Helper()
	h := r.Dial(r.t)
	defer h.Close()
	s := r.begin(h, newRun())
	r.undo(s, host.Scope{})
	r.end(s)
}

// explain adds to an error what its message leaves out.
func explain(err error) string {
	var b strings.Builder
	b.WriteString(err.Error())
	for _, e := range hostErrors(err) {
		fmt.Fprintf(&b, "\n  kind %s, exit code %d, remedy %q, output:\n%s", e.Kind, e.ExitCode, e.Remedy, e.Output)
	}
	return b.String()
}

// hostErrors lists every *host.Error in err's tree.
func hostErrors(err error) []*host.Error {
	var found []*host.Error
	if e, ok := err.(*host.Error); ok {
		found = append(found, e)
	}
	switch wrapped := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wrapped.Unwrap(); inner != nil {
			found = append(found, hostErrors(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wrapped.Unwrap() {
			found = append(found, hostErrors(inner)...)
		}
	}
	return found
}

// state is what must be the same before a change and after its undoing.
type state struct {
	Paths   map[string]host.Path
	Blocks  map[string]string
	Units   map[string]host.UnitState
	Sysctls map[string]string
	Swap    []string
	// Packages are versions of those that are installed.
	Packages map[string]string
}

func stateOf(f *host.Facts) state {
	s := state{
		Paths: map[string]host.Path{}, Blocks: f.Blocks, Units: map[string]host.UnitState{},
		Sysctls: f.Sysctls, Swap: f.System.Swap, Packages: f.Packages,
	}
	for p, seen := range f.Paths {
		if seen.Mode.IsDir() {
			seen.Modified, seen.Size = time.Time{}, 0 // what comes and goes in a directory changes these
		}
		s.Paths[p] = seen
	}
	for name, u := range f.Units {
		s.Units[name] = host.UnitState{Load: u.Load, Active: u.Active, File: u.File}
	}
	return s
}

func diff(a, b state) string { return cmp.Diff(a, b, cmpopts.EquateEmpty()) }

func blobOf(content []byte, digest string) host.Blob {
	return host.Blob{Digest: digest, Size: int64(len(content)), Name: "test content", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(string(content))), nil
	}}
}

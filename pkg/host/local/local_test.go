// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/hosttest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// TestConformance makes changes to files, in a directory of this machine, with a state directory of its own. What needs a
// machine to itself runs on a test host (see hosts_test.go). It must run as root, because files belong to root.
func TestConformance(t *testing.T) {
	hosttest.Run(t, func(t *testing.T) hosttest.Fixture {
		state, work := t.TempDir()+"/state", t.TempDir()
		var cut atomic.Int64
		config := Config{Name: "here", stateDir: state, cut: func() int { return int(cut.Load()) }}
		return hosttest.Shell(hosttest.Fixture{
			Dial:  func(t *testing.T) host.Host { return newHost(t, config) },
			CutAt: func(n int) { cut.Store(int64(n)) },
			Dir:   work, StateDir: state, Owner: "nobody", Group: "nogroup", FilesOnly: true, Parallel: true,
		}, newHost(t, Config{Name: "here"}))
	})
}

func newHost(t *testing.T, c Config) host.Host {
	t.Helper()
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// begin begins a session on this machine, with a state directory of its own, until the end of the test.
func begin(t *testing.T) host.Session {
	t.Helper()
	s, err := newHost(t, Config{Name: "here", stateDir: t.TempDir() + "/state"}).Begin(t.Context(), host.Run{ID: "r", Holder: "the test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.End(context.WithoutCancel(t.Context()), false) })
	return s
}

// What a query says of why it fails shows no secret of the act, and its end is kept.
func TestStderrOfQueries(t *testing.T) {
	s := begin(t)
	path := filepath.Join(t.TempDir(), "token")
	facts, err := s.Do(t.Context(), host.Act{
		Node: "n", Changes: []host.Change{host.File{Path: path, Mode: 0o600, Content: secret.New("hidden-4711")}},
		Verify: host.Query{Commands: []host.CommandQuery{
			{ID: "tells", Argv: []string{"sh", "-c", `echo "the token $(cat "$1") is refused" >&2; exit 1`, "sh", path}},
			{ID: "tells a lot", Argv: []string{"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1"}},
			{ID: "tells nothing", Argv: []string{"false"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(facts.Commands["tells"].Stderr), "the token "+secret.Redacted+" is refused\n"; got != want {
		t.Errorf("it tells %q, want %q", got, want)
	}
	if got := string(facts.Commands["tells a lot"].Stderr); len(got) > 8<<10 || !strings.HasSuffix(got, "the end\n") {
		t.Errorf("of a lot there is kept %d bytes, up to %q", len(got), got[max(0, len(got)-10):])
	}
	if got := facts.Commands["tells nothing"]; len(got.Stderr) != 0 || got.ExitCode != 1 {
		t.Errorf("of nothing there is %+v", got)
	}
}

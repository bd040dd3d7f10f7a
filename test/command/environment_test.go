// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts || ha

package command

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/fleet"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/kubexm"
)

// environment is some hosts and the program.
type environment struct {
	kubexm.Cluster
	t      *testing.T
	bundle *artifact.Bundle
	// before is what each host was, by name.
	before map[string]hosts.Snapshot
}

// start makes hosts.
func start(t *testing.T, name string, count int) *environment {
	t.Helper()
	return startHosts(t, hosts.Options{Name: name, Count: count}, fleet.BundleDir(t, "KUBEXM_BUNDLE", "bundle"))
}

// startHosts makes hosts of a kind, for clusters of what is in a bundle.
func startHosts(t *testing.T, o hosts.Options, bundle string) *environment {
	t.Helper()
	e := &environment{t: t}
	e.Name, e.Dir = o.Name, t.TempDir()
	var err error
	if e.Program, err = filepath.Abs(cmp.Or(os.Getenv("KUBEXM"), filepath.Join("..", "..", "bin", "kubexm"))); err != nil {
		t.Fatal(err)
	}
	e.bundle, err = artifact.Open(t.Context(), bundle, nil)
	if err != nil {
		t.Fatalf("%v (make artifacts artifacts-offline builds it)", err)
	}
	e.Bundle = e.bundle.Dir()
	e.KnownHosts = filepath.Join(e.Dir, "hosts", "known_hosts")
	if err := hosts.Remove(t.Context(), o.Name); err != nil { // what an earlier run that was killed has left
		t.Fatal(err)
	}
	o.Dir, o.Log = filepath.Join(e.Dir, "hosts"), t.Logf
	pool, err := hosts.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	e.Hosts = pool.Hosts
	if e.before, err = hosts.Snapshots(t.Context(), e.Hosts); err != nil {
		t.Fatal(err)
	}
	return e
}

// write declares the cluster, see kubexm.Cluster.Write.
func (e *environment) write(spec string) {
	e.t.Helper()
	if !strings.Contains(spec, "kubernetes:") {
		spec += "  kubernetes: {version: " + e.bundle.Manifest().KubernetesVersion + "}\n"
	}
	if err := e.Write(spec); err != nil {
		e.t.Fatal(err)
	}
}

// declared are the flags by which the config file, the artifacts and the hosts' keys are found.
func (e *environment) declared() []string {
	return []string{"-f", e.Config(), "--bundle", e.Bundle, "--known-hosts", e.KnownHosts}
}

// ends wants the program to end with a code, and what it prints to have all of the words.
func (e *environment) ends(code int, args []string, words ...string) string {
	e.t.Helper()
	began := time.Now()
	out, err := e.Run(e.t.Context(), args...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		e.t.Fatal(err)
	}
	e.t.Logf("kubexm %s: %d after %.1f s", strings.Join(args[:min(2, len(args))], " "), got, time.Since(began).Seconds())
	if got != code {
		e.t.Errorf("kubexm %s: exit code %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			e.t.Errorf("kubexm %s does not say %q:\n%s", strings.Join(args, " "), w, out)
		}
	}
	return out
}

// unchanged wants hosts to be what they were.
func (e *environment) unchanged(which ...*hosts.Host) {
	e.t.Helper()
	now, err := hosts.Snapshots(e.t.Context(), which)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, h := range which {
		for _, d := range hosts.Diff(e.before[h.Name], now[h.Name]) {
			e.t.Errorf("host %s is not as it was: %s", h.Name, d)
		}
	}
}

// sh runs a line on a host, past the program.
func (e *environment) sh(h *hosts.Host, line string) string {
	e.t.Helper()
	out, err := h.Exec(e.t.Context(), "sh", "-c", line)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// replace changes the config file.
func (e *environment) replace(old, updated string) {
	e.t.Helper()
	content, err := os.ReadFile(e.Config())
	if err != nil {
		e.t.Fatal(err)
	}
	if !strings.Contains(string(content), old) {
		e.t.Fatalf("the config file does not say %q:\n%s", old, content)
	}
	if err := os.WriteFile(e.Config(), []byte(strings.Replace(string(content), old, updated, 1)), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

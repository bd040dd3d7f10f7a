// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts || ha

package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/kubexm"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// environment is some hosts and the program.
type environment struct {
	kubexm.Cluster
	t      *testing.T
	bundle *artifact.Bundle
	lab    *lab.Lab
}

// start makes hosts.
func start(t *testing.T, name string, count int) *environment {
	t.Helper()
	return startHosts(t, hosts.Options{Name: name, Count: count}, lab.Bundle(t, "KUBEXM_BUNDLE", "bundle"))
}

// startHosts makes hosts of a kind, for clusters of what is in a bundle.
func startHosts(t *testing.T, o hosts.Options, bundle string) *environment {
	t.Helper()
	e := &environment{t: t}
	e.Name, e.Dir, e.Program = o.Name, lab.Dir(t), lab.Program(t)
	var err error
	e.bundle, err = artifact.Open(t.Context(), bundle, nil)
	if err != nil {
		t.Fatalf("%v (make artifacts artifacts-offline builds it)", err)
	}
	e.Bundle = e.bundle.Dir()
	e.KnownHosts = filepath.Join(e.Dir, "hosts", "known_hosts")
	o.Dir = filepath.Join(e.Dir, "hosts")
	e.lab = lab.Start(t, o)
	e.Hosts = e.lab.Hosts
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
	e.lab.WantReset(e.t, which...)
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

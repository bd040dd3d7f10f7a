// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestStoppedChecksDecideNothing: of a step whose look was stopped at its deadline it is not known whether it is so. What the answer
// has otherwise, as if the command had ended with that, does not count.
func TestStoppedChecksDecideNothing(t *testing.T) {
	script := []string{"/usr/bin/env", "form=unit", "/bin/sh", "-uc", "line\n" + strings.Repeat("more ", 100), "etcd"}
	command := step.Command{Title: "join", Argv: []string{"join"}, Done: step.Done{Check: script}}
	for name, s := range map[string]step.Step{
		"command":  command,
		"images":   step.Import{Images: []step.Image{{Ref: "registry.k8s.io/pause:3.10", Digest: "sha256:ab"}}},
		"account":  step.User{Name: "etcd"},
		"swap":     step.SwapOff{},
		"sequence": step.New(step.Meta{Name: "a/b"}, step.Command{Title: "x", Argv: []string{"x"}, Done: step.Done{Journaled: true}}, command),
		"until":    step.New(step.Meta{Name: "a/b"}).Until(step.Done{Check: script}),
	} {
		for _, code := range []int{0, 1, 124, 137} {
			facts := &host.Facts{Commands: map[string]host.Result{}, Journal: journaled("input")}
			for _, q := range s.Observe().Commands {
				facts.Commands[q.ID] = host.Result{ExitCode: code, Stdout: []byte("half a line"), Stopped: 10 * time.Second}
			}
			d, err := s.Precheck(step.View{Facts: facts, Values: values{}, Node: "node", Digest: "input"})
			var undecided *step.Undecided
			if !errors.As(err, &undecided) || len(d) > 0 {
				t.Errorf("%s, exit code %d: %v, %v", name, code, d, err)
				continue
			}
			for _, want := range []string{undecided.Check, "10s", "half a line"} {
				if !strings.Contains(err.Error(), want) || undecided.Remedy() == "" {
					t.Errorf("%s: %q does not say %q", name, err, want)
				}
			}
			if len(undecided.Check) > 130 || strings.Contains(undecided.Check, "form=") {
				t.Errorf("%s: the check is called %q", name, undecided.Check)
			}
		}
	}
}

// TestUndecidedDone: a check that cannot tell, by its exit code or for want of time, matters only where nothing else says that the
// thing is not there. One that ends with 124 by itself says that it is not so.
func TestUndecidedDone(t *testing.T) {
	done := step.Done{Paths: []string{"/a"}, Check: []string{"/bin/check", "x"}, Journaled: true}
	run := step.Command{Title: "join", Argv: []string{"join"}, Done: done}
	id := run.Observe().Commands[0].ID
	facts := func(there bool, journal map[string]host.JournalEntry, r host.Result) host.Facts {
		f := paths("/a", host.Path{Exists: there})
		f.Journal, f.Commands = journal, map[string]host.Result{id: r}
		return f
	}
	for _, tt := range []struct {
		name  string
		facts host.Facts
		want  string
	}{
		{"stopped", facts(true, journaled("input"), host.Result{ExitCode: 124, Stopped: 10 * time.Second}),
			`it cannot be determined whether this is so: the check "/bin/check x" did not end within 10s and was stopped`},
		{"cannot tell", facts(true, journaled("input"), host.Result{ExitCode: step.CannotTell, Stdout: []byte("no quorum\n")}),
			`it cannot be determined whether this is so: the check "/bin/check x" cannot tell: no quorum`},
		{"ends with 124", facts(true, journaled("input"), host.Result{ExitCode: 124}), "not ready yet"},
		{"ends with 137", facts(true, journaled("input"), host.Result{ExitCode: 137}), "not ready yet"},
		{"stopped, and not there", facts(false, journaled("input"), host.Result{Stopped: time.Second}), "/a is absent"},
		{"stopped, and never done", facts(true, nil, host.Result{Stopped: time.Second}), "not done yet"},
	} {
		d, err := run.Precheck(step.View{Facts: &tt.facts, Node: "node", Digest: "input"})
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(d) > 0:
			got = d[0].From
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

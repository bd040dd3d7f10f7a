// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// The programs of a host on which a kubelet is healthy unless its unit has the word bad. It ends at once then, and is started again
// each time somebody asks. $state has a line for each restart, and began where the kubelet was ever started.
var programs = map[string]string{
	"systemctl": `case "$*" in
*ExecMainStartTimestampMonotonic*) if [ -e "$state/began" ]; then echo 5; else echo 0; fi ;;
*NRestarts*) if grep -q bad "$state/unit"; then echo 2; else echo 0; fi ;;
*is-active*) ! grep -q bad "$state/unit" ;;
restart*) sha256sum <"$state/unit" >>"$state/restarts" ;;
esac`,
	"curl":       `! grep -q bad "$state/unit"`,
	"journalctl": `echo 'E1122 10:00:00.0 1 run.go:72] "command failed" err="unknown flag: --bad"'`,
}

type machine struct {
	t     *testing.T
	state string
}

func newMachine(t *testing.T, began bool) *machine {
	t.Helper()
	m := &machine{t, t.TempDir()}
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(m.state, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if began {
		m.write("began", "")
	}
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.state, name) }

func (m *machine) write(name, content string) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), []byte(content), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(name string) string {
	m.t.Helper()
	content, err := os.ReadFile(m.path(name))
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	return string(content)
}

func (m *machine) exec(argv []string) (string, bool) {
	m.t.Helper()
	for i, a := range argv {
		argv[i] = strings.ReplaceAll(a, "/run/kubexm-kubelet", m.path("kept"))
	}
	cmd := exec.CommandContext(m.t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+m.state+":"+os.Getenv("PATH"), "state="+m.state)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// follow brings the files to these contents; before reports whether that was needed.
func (m *machine) follow(unit, config string) (said string, ok, before bool) {
	m.t.Helper()
	c := kubelet.Follow(spec.Kubelet{}, m.path("upgrading"),
		kubelet.File{Path: m.path("config"), Content: config}, kubelet.File{Path: m.path("unit"), Content: unit},
	).(step.Sequence).Parts[0].(step.Command)
	_, holds := m.exec(c.Done.Check)
	said, ok = m.exec(c.Argv)
	return said, ok, !holds
}

func (m *machine) restarts() int { return strings.Count(m.read("restarts"), "\n") }

func TestFollow(t *testing.T) {
	m := newMachine(t, true)
	m.write("unit", "good\n")
	m.write("config", "a: 1\n")
	if said, ok, needed := m.follow("good\n", "a: 1\n"); !ok || needed || m.restarts() != 0 {
		t.Errorf("nothing is to change: %q, %t, needed %t, %d restarts", said, ok, needed, m.restarts())
	}
	if said, ok, needed := m.follow("good\n", "a: 2\n"); !ok || !needed || m.restarts() != 1 || m.read("config") != "a: 2\n" {
		t.Errorf("a change: %q, %t, needed %t, %d restarts, %q", said, ok, needed, m.restarts(), m.read("config"))
	}
	said, ok, _ := m.follow("bad\n", "a: 3\n")
	if ok || !strings.Contains(said, "was put back") || !strings.Contains(said, "unknown flag: --bad") {
		t.Errorf("a bad change says %q, %t", said, ok)
	}
	if m.read("unit") != "good\n" || m.read("config") != "a: 2\n" || m.restarts() != 3 {
		t.Errorf("after a bad change: %q, %q, %d restarts", m.read("unit"), m.read("config"), m.restarts())
	}
	if _, err := os.Stat(m.path("kept")); !os.IsNotExist(err) {
		t.Errorf("what was kept is still there: %v", err)
	}
}

// A run that was cut after it had placed the files is taken up: what was there before it is known still.
func TestFollowAfterACut(t *testing.T) {
	m := newMachine(t, true)
	m.write("unit", "bad\n")
	m.write("config", "a: 1\n")
	if err := os.Mkdir(m.path("kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.write("kept/unit", "good\n")
	if said, ok, needed := m.follow("bad\n", "a: 1\n"); ok || !needed || m.read("unit") != "good\n" {
		t.Errorf("it says %q, %t, needed %t, and the unit is %q", said, ok, needed, m.read("unit"))
	}
}

// Before the kubelet was ever started, and while programs are replaced, others write its files.
func TestFollowLeavesAlone(t *testing.T) {
	for name, m := range map[string]*machine{"not begun": newMachine(t, false), "upgrading": newMachine(t, true)} {
		m.write("unit", "good\n")
		m.write("config", "a: 1\n")
		if name == "upgrading" {
			m.write("upgrading", "")
		}
		if said, ok, _ := m.follow("good\n", "a: 2\n"); !ok || m.restarts() != 0 || m.read("config") != "a: 1\n" {
			t.Errorf("%s: %q, %t, %d restarts, %q", name, said, ok, m.restarts(), m.read("config"))
		}
	}
}

func TestHealthy(t *testing.T) {
	m := newMachine(t, true)
	check := kubelet.Healthy(spec.Kubelet{}).(step.Sequence).Parts[0].(step.Command).Done.Check
	m.write("unit", "good\n")
	if said, ok := m.exec(check); !ok {
		t.Error(said)
	}
	m.write("unit", "bad\n")
	if said, ok := m.exec(check); ok || !strings.Contains(said, "not healthy") {
		t.Errorf("of a kubelet that does not run it says %q, %t", said, ok)
	}
}

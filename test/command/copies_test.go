// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

const serialRecord = host.StateDir + "/" + host.SerialFile

// TestTwoCopies works on one cluster with two copies of its state: the one that is behind changes nothing, until it is said to be the
// truth. A run that is killed leaves the state at most one ahead of the host. What is recovered is the newest.
func TestTwoCopies(t *testing.T) {
	e := start(t, "copies", 1)
	master := e.Hosts[0]
	e.write("  roleGroups: {master: [$1]}\n")
	e.ends(0, e.CreateArgs())
	e.haveSerial(e.state(), 1, 1)

	other := filepath.Join(e.Dir, "other")
	if err := os.CopyFS(filepath.Join(other, e.Name), regular{os.DirFS(e.state())}); err != nil {
		t.Fatal(err)
	}
	theirs := []string{"--state-dir", other}
	restart := []string{"restart", "kubelet", "-f", e.Config(), "--known-hosts", e.KnownHosts}
	renew := []string{"certs", "renew", "apiserver", "--yes", "-f", e.Config(), "--known-hosts", e.KnownHosts}

	t.Log("another copy goes on, and this one is behind")
	e.ends(0, append(theirs, restart...))
	e.haveSerial(filepath.Join(other, e.Name), 2, 2)
	const drifted = "/etc/sysctl.d/99-kubexm-cri.conf"
	e.sh(master, "echo 'vm.swappiness = 7' >>"+drifted)
	was := e.running()
	for _, args := range [][]string{restart, renew, e.CreateArgs()} {
		e.ends(3, args, "is an older copy", "no host was changed", "host "+master.Name+" was changed with serial 2, written by ",
			"this copy has serial 1", "--state-is-current")
	}
	e.ends(0, append([]string{"plan"}, e.declared()...), "Warning: the state of "+e.Name, "is an older copy", drifted)
	e.ends(0, []string{"certs", "check", "--known-hosts", e.KnownHosts})
	if now := e.running(); now[master.Name] != was[master.Name] {
		t.Errorf("what was refused has changed the host:\n%s\nwas:\n%s", now[master.Name], was[master.Name])
	}
	e.haveSerial(e.state(), 1, 2)

	t.Log("this copy is said to be the truth, and the other one is behind")
	e.ends(0, append(e.CreateArgs(), "--state-is-current"))
	e.haveSerial(e.state(), 3, 3)
	e.sh(master, "! grep -q swappiness "+drifted)
	e.ends(3, append(theirs, restart...), "is an older copy", "serial 3")

	t.Log("the host is not written: the state is ahead, and goes on with the same number")
	e.sh(master, "mkdir "+serialRecord+".part")
	e.ends(1, restart, "cannot write the record of the state's serial")
	e.haveSerial(e.state(), 4, 3)
	e.sh(master, "rmdir "+serialRecord+".part")
	e.ends(0, restart)
	e.haveSerial(e.state(), 4, 4)

	t.Log("killed again and again")
	e.staysTogether(restart)

	t.Log("lost, and recovered as the newest")
	_, now := e.serials(e.state())
	e.lose()
	e.ends(0, append([]string{"recover"}, e.declared()...), "Serial:")
	e.haveSerial(e.state(), now, now)
	e.ends(3, append(theirs, restart...), "is an older copy")
	e.ends(0, restart)
	e.haveSerial(e.state(), now+1, now+1)

	t.Log("a reset is not refused")
	e.ends(0, append(theirs, "reset", "host", master.Name, "--yes", "--known-hosts", e.KnownHosts),
		"Warning: the state of "+e.Name, "is an older copy")
	e.unchanged(e.Hosts...)
}

// serials are the numbers that a copy of the state and the control plane host have, 0 for none.
func (e *environment) serials(dir string) (local, onHost int64) {
	e.t.Helper()
	number := func(text string) int64 {
		var s host.Serial
		if err := json.Unmarshal([]byte(text), &s); err != nil && text != "" {
			e.t.Fatalf("%v in %q", err, text)
		}
		return s.Number
	}
	content, err := os.ReadFile(filepath.Join(dir, "serial.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.t.Fatal(err)
	}
	return number(string(content)), number(e.sh(e.Hosts[0], "cat "+serialRecord+" 2>/dev/null || true"))
}

func (e *environment) haveSerial(dir string, local, onHost int64) {
	e.t.Helper()
	if gotLocal, gotHost := e.serials(dir); gotLocal != local || gotHost != onHost {
		e.t.Errorf("the state has serial %d and the host %d, want %d and %d", gotLocal, gotHost, local, onHost)
	}
}

// staysTogether kills a command again and again, a little later each time, until it ends by itself: the state is never behind the host, and
// never more than one ahead.
func (e *environment) staysTogether(args []string) {
	e.t.Helper()
	for after := range e.cuts(args, 3, 100*time.Millisecond, later(100*time.Millisecond)) {
		if local, onHost := e.serials(e.state()); local < onHost || local > onHost+1 {
			e.t.Errorf("cut after %v: the state has serial %d, and the host %d", after, local, onHost)
		}
	}
	local, onHost := e.serials(e.state())
	e.haveSerial(e.state(), local, local)
	e.t.Logf("the state and the host have serial %d", onHost)
}

// regular is a directory without sockets.
type regular struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (r regular) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(r.FS, name)
	var kept []fs.DirEntry
	for _, d := range all {
		if d.IsDir() || d.Type().IsRegular() {
			kept = append(kept, d)
		}
	}
	return kept, err
}

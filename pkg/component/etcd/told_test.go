// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestMembersThatAreNotTold: an etcd that runs and does not list its members is no reason to change them; where none runs, it is for
// the step before to start it.
func TestMembersThatAreNotTold(t *testing.T) {
	s := settings(etcd.Unit)
	argv := etcd.Members(s).(step.Sequence).Parts[0].(step.Command).Done.Check
	for _, tt := range []struct {
		name, ss, etcdctl string
		code              int
		says              string
	}{
		{"nothing is installed", "exit 0", "", 1, "etcd does not run here"},
		{"it does not run", "exit 0", "exit 1", 1, "etcd does not run here"},
		{"it has no quorum", "echo LISTEN", "echo 'Error: etcdserver: no leader' >&2; exit 1", step.CannotTell,
			"etcd runs here and does not tell its members: etcdserver: no leader"},
		{"it says nothing", "echo LISTEN", "exit 124", step.CannotTell, "etcd runs here and does not tell its members: it does not answer"},
		{"it tells them", "echo LISTEN", "echo '1, started, n1, https://192.168.0.11:2380, https://192.168.0.11:2379, false'", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, script := range map[string]string{"ss": tt.ss, "etcdctl": tt.etcdctl} {
				if script == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
			out, err := cmd.Output()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if code, got := cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out)); code != tt.code || got != tt.says {
				t.Errorf("exit code %d, %q; want %d, %q", code, got, tt.code, tt.says)
			}
		})
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	at := slices.Index(argv, "/bin/sh")
	for _, tt := range []struct {
		name, ss, etcdctl string
		// ours is whether the host has our certificate.
		ours bool
		code int
		says string
	}{
		{"nothing is installed", "exit 0", "", false, 1, "etcd does not run here"},
		{"it does not run", "exit 0", "exit 1", true, 1, "etcd does not run here"},
		{"it is another's", "echo LISTEN", "echo 'Error: open admin.pem' >&2; exit 1", false, 1, "there is no certificate yet to ask etcd with"},
		{"it has no quorum", "echo LISTEN", "echo 'Error: etcdserver: no leader' >&2; exit 1", true, step.CannotTell,
			"etcd runs here and does not tell its members: etcdserver: no leader"},
		{"it says nothing", "echo LISTEN", "exit 124", true, step.CannotTell, "etcd runs here and does not tell its members: it does not answer"},
		{"it tells them", "echo LISTEN", "echo '1, started, n1, https://192.168.0.11:2380, https://192.168.0.11:2379, false'", true, 0, ""},
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
			if tt.ours {
				if err := errors.Join(os.Mkdir(filepath.Join(dir, "ssl"), 0o700),
					os.WriteFile(filepath.Join(dir, "ssl", "admin-"+s.Name+".pem"), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			here := slices.Concat(argv[:at], []string{"dir=" + dir}, argv[at:])
			cmd := exec.CommandContext(t.Context(), here[0], here[1:]...)
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

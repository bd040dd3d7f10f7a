// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crio

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnter: a command is run in the container of that name, and where there is none, or no CRI-O, that is said.
func TestEnter(t *testing.T) {
	dir := t.TempDir()
	asked := func(name string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-uc", enter+"enter "+name)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	const none = "no container of etcd runs in CRI-O"
	if got, err := asked("etcd"); err == nil || got != none {
		t.Errorf("without CRI-O it says %q, %v", got, err)
	}
	const program = `#!/bin/sh
[ "$*" != "ps --quiet --state running --label io.kubernetes.container.name=etcd" ] || echo bb
`
	if err := os.WriteFile(filepath.Join(dir, "crictl"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := asked("etcd"); err != nil || got != "crictl exec --sync bb" {
		t.Errorf("it says %q, %v", got, err)
	}
	if got, err := asked("kube-scheduler"); err == nil || got != strings.Replace(none, "etcd", "kube-scheduler", 1) {
		t.Errorf("of none it says %q, %v", got, err)
	}
}

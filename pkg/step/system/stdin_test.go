// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinesAreNotArguments: a process list does not show users' lines, which may hold passwords, and what they write is for all to read
// though our shell's umask is 077.
func TestLinesAreNotArguments(t *testing.T) {
	dir := t.TempDir()
	line := `tr '\0' ' ' </proc/$$/cmdline >list; : s3cret
if cat | grep .; then exit 9; fi
false || touch repo
printf '%s\n' "two  blanks" >'a file'`
	cmd := exec.Command("sh", "-c", `umask 077; exec /bin/sh -ec "$1"`, "sh", fromStdin)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(line)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	list, err := os.ReadFile(filepath.Join(dir, "list"))
	if err != nil || len(list) == 0 || strings.Contains(string(list), "s3cret") {
		t.Errorf("the process list shows %q (%v)", list, err)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "a file")); err != nil || string(content) != "two  blanks\n" {
		t.Errorf("%q, %v", content, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "repo")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	cmd = exec.Command("/bin/sh", "-ec", fromStdin)
	cmd.Stdin = strings.NewReader("false\ntrue")
	if err := cmd.Run(); err == nil {
		t.Error("a line that fails must end the rest")
	}
}

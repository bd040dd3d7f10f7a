// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestNothingOutlivesTheSession ends a session while what watches for its worker waits: whoever comes next, and compares the host with
// what it was, must not find a process of it.
func TestNothingOutlivesTheSession(t *testing.T) {
	// Everything that the session starts holds the pipe's end, so that it is read to its end once they are all gone.
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.CommandContext(t.Context(), "sh", "-s", t.TempDir(), sessionLib)
	cmd.ExtraFiles = []*os.File{nil, write} // the session's own is 3
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	if _, err := io.WriteString(stdin, `
T=$1
PATH=$T:$PATH
printf '#!/bin/sh\necho >"$0.waits"\nexec sleep 1000\n' >"$T/timeout"
chmod +x "$T/timeout"
mkfifo "$T/timeout.waits"
eval "$2"
k_self() { self=$$; }
s_work() { read -r waits <"$T/timeout.waits"; }
s_run 1
exit
`); err != nil {
		t.Fatal(err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, read); err != nil {
		t.Errorf("the session has ended, and something of it runs on: %v", err)
	}
}

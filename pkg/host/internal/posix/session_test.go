// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
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

// recorder keeps what is sent to processes.
type recorder struct {
	quick
	sent *strings.Builder
}

func (r recorder) Start(ctx context.Context, command string) (Process, error) {
	p, err := r.quick.Start(ctx, command)
	return recorded{p, r.sent}, err
}

type recorded struct {
	Process
	sent *strings.Builder
}

func (r recorded) Write(b []byte) (int, error) {
	r.sent.Write(b)
	return r.Process.Write(b)
}

// TestPatience: a package tool whose time is over has half a minute to end what it is at before it is killed, and the session with it.
func TestPatience(t *testing.T) {
	file := host.Act{Changes: []host.Change{host.File{Path: "/a"}}}
	packages := host.Act{Changes: []host.Change{host.Package{Names: []string{"jq"}}}}
	for _, tt := range []struct {
		acts []host.Act
		want string
	}{
		{[]host.Act{file}, "30"}, {[]host.Act{file, packages}, "300"},
	} {
		sent := &strings.Builder{}
		h := New(recorder{sent: sent}, Config{Name: "n1", StateDir: t.TempDir()})
		h.stop(t.Context(), "999999999", patienceWith(tt.acts))
		if !strings.HasSuffix(sent.String(), "k_stop 999999999 "+tt.want+"\n") {
			t.Errorf("it is stopped by %q, want %s tenths of a second", sent.String()[max(0, sent.Len()-60):], tt.want)
		}
	}
}

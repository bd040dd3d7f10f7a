// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	hostssh "github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/bench/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell is this machine as the host that is recorded. It is only observed.
func shell(command string) (*replay.Process, error) {
	cmd := exec.Command("sh", "-c", command)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &replay.Process{Stdin: stdin, Stdout: stdout, Stderr: stderr, Wait: func() (int, error) {
		if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
			return 0, err
		}
		return cmd.ProcessState.ExitCode(), nil
	}}, nil
}

// serve starts a host and connects to it.
func serve(t *testing.T, h *replay.Host) *hostssh.Host {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.Serve(ctx, listener)
	}()
	t.Cleanup(func() { cancel(); <-served })
	client, err := replay.Key()
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	connected, err := hostssh.Dial(t.Context(), hostssh.Config{
		Name: h.Name, Address: "127.0.0.1", Port: int32(address.Port), Auth: hostssh.Auth{Signers: []ssh.Signer{client}},
		HostKey: hostssh.HostKey{Pinned: []string{ssh.FingerprintSHA256(h.Key.PublicKey())}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connected.Close() })
	return connected
}

func TestPlayedHostsAnswerAsTheRecordedOneDid(t *testing.T) {
	key, err := replay.Key()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	query := host.Query{
		Paths:    []host.PathQuery{{Path: file, Digest: true, Content: true}, {Path: "/nowhere"}},
		Sysctls:  []string{"kernel.hostname"},
		Commands: []host.CommandQuery{{ID: "speaks", Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}}},
	}
	memory := replay.NewMemory()
	failed := func(err error) { t.Error(err) }
	original := serve(t, &replay.Host{Name: "host-0", Key: key, Memory: memory, Start: shell, Failed: failed})
	var recorded []*host.Facts
	for i := range 2 {
		if err := os.WriteFile(file, fmt.Appendf(nil, "content %d\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
		facts, err := original.Observe(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, facts)
	}
	if got := recorded[0].Paths[file].Content; !bytes.Equal(got, []byte("content 0\n")) {
		t.Fatalf("the recorded host answered %q", got)
	}
	for i := range 3 {
		played := serve(t, &replay.Host{Name: fmt.Sprintf("host-%d", i+1), Key: key, Memory: memory, Failed: failed})
		for round, want := range recorded {
			got, err := played.Observe(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(host.Facts{}, "Taken", "ClockSkew")); diff != "" {
				t.Errorf("host %d, round %d (-recorded +played):\n%s", i+1, round, diff)
			}
		}
	}
}

func TestWhatWasNotAskedIsAnError(t *testing.T) {
	key, err := replay.Key()
	if err != nil {
		t.Fatal(err)
	}
	failures := make(chan error, 1)
	played := serve(t, &replay.Host{Name: "host-1", Key: key, Memory: replay.NewMemory(), Failed: func(err error) { failures <- err }})
	if _, err := played.Observe(t.Context(), host.Query{}); err == nil {
		t.Error("a host without memory has answered")
	}
	if <-failures == nil {
		t.Error("nobody was told")
	}
}

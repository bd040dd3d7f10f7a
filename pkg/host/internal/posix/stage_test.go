// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// The pipe by which sshd hands on what arrives is made larger by what the host has for it. Where it has nothing, the pipe stays
// as it is; and what waits in it is never taken.
func TestWiden(t *testing.T) {
	for name, tt := range map[string]struct {
		programs []string
		size     int
	}{
		"perl":    {[]string{"perl"}, 1 << 20},
		"neither": {nil, 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			for _, program := range tt.programs {
				found, err := exec.LookPath(program)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(found, filepath.Join(path, program)); err != nil {
					t.Fatal(err)
				}
			}
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			defer writer.Close()
			if _, err := writer.WriteString("sent"); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/bin/sh", "-c", compact(stageLib)+"t_widen; :")
			cmd.Stdin, cmd.Env = reader, []string{"PATH=" + path}
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
			if size, err := unix.FcntlInt(reader.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || size != tt.size {
				t.Errorf("the pipe holds %d bytes (%v), not %d", size, err, tt.size)
			}
			var b [8]byte
			if n, err := reader.Read(b[:]); err != nil || string(b[:n]) != "sent" {
				t.Errorf("of what was sent there is %q (%v)", b[:n], err)
			}
		})
	}
}

// quick is a transport whose processes have always ended by the time that their input is closed, which is an error then, as
// over SSH.
type quick struct{}

func (quick) Latency() time.Duration { return 0 }

func (quick) Start(_ context.Context, command string) (Process, error) {
	cmd := exec.Command("/bin/sh", "-c", command)
	p := &quickProcess{cmd: cmd, ended: make(chan struct{})}
	var theirs [3]*os.File
	var err error
	if theirs[0], p.stdin, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.stdout, theirs[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.stderr, theirs[2], err = os.Pipe(); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

type quickProcess struct {
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File
	ended                 chan struct{}
}

func (p *quickProcess) Write(b []byte) (int, error) { return p.stdin.Write(b) }
func (p *quickProcess) Stdout() io.Reader           { return p.stdout }
func (p *quickProcess) Stderr() io.Reader           { return p.stderr }
func (p *quickProcess) Close() error                { return p.stdin.Close() }

func (p *quickProcess) CloseWrite() error {
	<-p.ended
	return io.EOF
}

func (p *quickProcess) Wait() (int, error) {
	<-p.ended
	return p.cmd.ProcessState.ExitCode(), nil
}

const staged = "what is sent"

// stagingHost is a host with a place to stage content, and that directory.
func stagingHost(t *testing.T) (*Host, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "staging"), 0o700); err != nil {
		t.Fatal(err)
	}
	return New(quick{}, Config{Name: "n1", StateDir: dir}), filepath.Join(dir, "staging")
}

// sent is content that is said to be what is staged.
func sent(content string) host.Blob {
	return host.Blob{
		Name: "content", Digest: "sha256:" + sumOf(staged), Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}
}

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func holds(t *testing.T, path, content string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != content {
		t.Errorf("there is %q (%v)", got, err)
	}
}

// The host ends when it has read the end of a stream. That its input cannot be closed any more by then is no failure.
func TestStreamEndsBeforeItIsClosed(t *testing.T) {
	h, staging := stagingHost(t)
	blob := sent(staged)
	s := &session{host: h, mark: "m"}
	if err := s.stream(t.Context(), []part{{blob: blob, length: blob.Size}}, ""); err != nil {
		t.Errorf("the host has all of it: %v", err)
	}
	holds(t, filepath.Join(staging, sumOf(staged)+".m.part"), staged)
}

// A shell that goes on storing what a session sent whose connection was cut does not write to the files of the session after it.
func TestSessionsDoNotShareWhatArrives(t *testing.T) {
	h, staging := stagingHost(t)
	old, now := &session{host: h, mark: "old"}, &session{host: h, mark: "now"}
	for _, each := range []struct {
		by   *session
		blob host.Blob
	}{{now, sent(staged)}, {old, sent("half")}} {
		if err := each.by.stream(t.Context(), []part{{blob: each.blob, length: each.blob.Size}}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := now.accept(t.Context(), []host.Blob{sent(staged)}, h.aside); err != nil {
		t.Errorf("what this session sent is whole: %v", err)
	}
	if err := old.accept(t.Context(), []host.Blob{sent("half")}, h.aside); host.KindOf(err) != host.KindCorrupt {
		t.Errorf("what the old session sent is accepted: %v", err)
	}
	holds(t, filepath.Join(staging, sumOf(staged)), staged)
}

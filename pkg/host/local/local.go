// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local is host.Host for the machine that we run on: the scripts of ssh, without the SSH.
package local

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/user"
	"sync"
	"syscall"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/internal/posix"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Config says how to act on this machine.
type Config struct {
	// Name of the host in plans, events and errors; empty means the machine's host name.
	Name string
	// SudoPassword is what sudo asks for, when we are not root and it asks.
	SudoPassword secret.Value

	// For tests: another state directory, and where to be killed.
	stateDir string
	cut      func() int
}

// Host is this machine.
type Host struct {
	*posix.Host
	transport *transport
}

var _ host.Host = (*Host)(nil)

// New returns this machine. Without being root, everything is done by sudo.
func New(c Config) (*Host, error) {
	if c.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, &host.Error{Kind: host.KindUnreachable, Host: "local", Message: "this machine has no name", Err: err}
		}
		c.Name = name
	}
	me, err := user.Current()
	if err != nil {
		return nil, &host.Error{Kind: host.KindPrivilege, Host: c.Name, Message: "cannot tell who we are", Err: err}
	}
	t := &transport{running: map[*process]bool{}}
	return &Host{transport: t, Host: posix.New(t, posix.Config{
		Name: c.Name, User: me.Username, Sudo: me.Uid != "0", SudoPassword: c.SudoPassword, StateDir: c.stateDir, Cut: c.cut,
	})}, nil
}

// Close ends every session.
func (h *Host) Close() error {
	h.transport.mu.Lock()
	defer h.transport.mu.Unlock()
	h.transport.closed = true
	for p := range h.transport.running {
		p.closePipes()
	}
	return nil
}

// transport is posix.Transport by os/exec.
type transport struct {
	mu      sync.Mutex
	running map[*process]bool
	closed  bool
}

var errClosed = errors.New("it was closed")

// Start implements posix.Transport.
func (t *transport) Start(ctx context.Context, command string) (posix.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Not CommandContext: the end of the context must not kill what is in the middle of a change.
	cmd := exec.Command("/bin/sh", "-c", command)
	// A session of its own, like that of a login: what is killed there with its process group is not us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := &process{cmd: cmd, transport: t, ended: make(chan struct{}), closed: make(chan struct{})}
	pipes, err := newPipes(3)
	if err != nil {
		return nil, err
	}
	cmd.Stdin, p.stdin = pipes[0].r, pipes[0].w
	p.stdout, cmd.Stdout = pipes[1].r, pipes[1].w
	p.stderr, cmd.Stderr = pipes[2].r, pipes[2].w
	theirs := []*os.File{pipes[0].r, pipes[1].w, pipes[2].w}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err = errClosed; !t.closed {
		err = cmd.Start()
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, err
	}
	t.running[p] = true
	go p.reap()
	return p, nil
}

// Latency implements posix.Transport.
func (t *transport) Latency() time.Duration { return 0 }

type pipe struct{ r, w *os.File }

func newPipes(n int) ([]pipe, error) {
	var pipes []pipe
	for range n {
		r, w, err := os.Pipe()
		if err != nil {
			for _, p := range pipes {
				_, _ = p.r.Close(), p.w.Close()
			}
			return nil, err
		}
		pipes = append(pipes, pipe{r, w})
	}
	return pipes, nil
}

// process is posix.Process by os/exec.
type process struct {
	cmd                   *exec.Cmd
	transport             *transport
	stdin, stdout, stderr *os.File
	ended                 chan struct{}
	closed                chan struct{}
	once                  sync.Once
}

func (p *process) Write(b []byte) (int, error) { return p.stdin.Write(b) }
func (p *process) CloseWrite() error           { return p.stdin.Close() }
func (p *process) Stdout() io.Reader           { return p.stdout }
func (p *process) Stderr() io.Reader           { return p.stderr }

// reap waits for the process, no matter who else does.
func (p *process) reap() {
	_ = p.cmd.Wait() // Wait tells
	p.transport.mu.Lock()
	delete(p.transport.running, p)
	p.transport.mu.Unlock()
	close(p.ended)
}

// Wait implements posix.Process.
func (p *process) Wait() (int, error) {
	select {
	case <-p.ended:
	case <-p.closed:
		select {
		case <-p.ended:
		default:
			return 0, errClosed // it goes on without us
		}
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// Close implements posix.Process.
func (p *process) Close() error {
	p.closePipes()
	return nil
}

func (p *process) closePipes() {
	p.once.Do(func() { close(p.closed) })
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		_ = f.Close() // the second close of one is none
	}
}

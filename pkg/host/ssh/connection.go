// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/semaphore"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/internal/posix"
)

// maxChannels is how many channels we open at once on a connection. sshd allows 10 sessions (MaxSessions); the rest is for
// a person who shares the connection's account by multiplexing.
const maxChannels = 8

// connection is an SSH connection with its keep-alive, and the connection that it goes through, if any.
type connection struct {
	name     string
	address  string // that was dialled
	client   *ssh.Client
	through  *connection
	channels *semaphore.Weighted
	gone     atomic.Int64  // channels that ended
	ended    chan struct{} // closed when the connection is
	alive    sync.WaitGroup
	// silent says that the peer was given up for its silence; latency is the shortest time that a channel took to open, which
	// sshd does before it starts anything.
	mu      sync.Mutex
	silent  bool
	latency time.Duration
	// running are the processes that were not given up yet.
	running map[*process]bool
}

func newConnection(name string, client *ssh.Client, every time.Duration, times int) *connection {
	c := &connection{name: name, client: client, channels: semaphore.NewWeighted(maxChannels),
		ended: make(chan struct{}), running: make(map[*process]bool)}
	c.alive.Add(2)
	go func() {
		defer c.alive.Done()
		defer close(c.ended)
		_ = client.Wait() // that it ended is all that matters
	}()
	go func() {
		defer c.alive.Done()
		c.keepAlive(every, times)
	}()
	return c
}

// keepAlive asks the peer for a sign of life every so often and closes the connection when none comes.
func (c *connection) keepAlive(every time.Duration, times int) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	answered := make(chan struct{}, 1)
	waiting, missed := false, 0
	for {
		select {
		case <-c.ended:
			return
		case <-answered:
			waiting, missed = false, 0
		case <-ticker.C:
			if !waiting {
				waiting = true
				c.alive.Add(1)
				go func() {
					defer c.alive.Done()
					// Any answer will do, a refusal too. An error is the connection's end, which ended tells.
					if _, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil); err == nil {
						answered <- struct{}{}
					}
				}()
				continue
			}
			if missed++; missed >= max(times-1, 1) {
				c.mu.Lock()
				c.silent = true
				c.mu.Unlock()
				_ = c.client.Close()
				return
			}
		}
	}
}

func (c *connection) close() error {
	err := c.client.Close()
	c.mu.Lock()
	running := slices.Collect(maps.Keys(c.running))
	c.mu.Unlock()
	for _, p := range running {
		_ = p.Close() // what a host sent and nobody reads would keep its pumps for ever
	}
	c.alive.Wait()
	if c.through != nil {
		err = errors.Join(err, c.through.close())
	}
	if isCut(err) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// dialTCP connects from the far end of c, or from here when c is nil.
func (c *connection) dialTCP(ctx context.Context, endpoint string) (net.Conn, error) {
	if c == nil {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", endpoint)
	}
	return c.client.DialContext(ctx, "tcp", endpoint)
}

// lost is the error of everything that was on the connection when it ended.
func (c *connection) lost(err error) error {
	e := &host.Error{Kind: host.KindUnreachable, Host: c.name, Message: "the connection is lost", Err: err,
		Remedy: "what runs on the host goes on to its end; connect again when the host answers"}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent {
		e.Message = "the connection is lost: the host gave no sign of life"
	}
	return e
}

// answered notes how long the peer took to answer.
func (c *connection) answered(after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latency == 0 || after < c.latency {
		c.latency = after
	}
}

// Latency implements posix.Transport.
func (c *connection) Latency() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latency
}

// opened is a session's channel, or why there is none.
type opened struct {
	channel  ssh.Channel
	requests <-chan *ssh.Request
	err      error
}

// open asks for a session. sshd counts one that ended until it comes to clean up, which it has not when the end and the next
// question reach it together, and which it has before it sends an answer. So a refusal is believed when no session of ours
// ended since the question before.
func (c *connection) open() opened {
	for before := int64(-1); ; {
		gone, asked := c.gone.Load(), time.Now()
		channel, requests, err := c.client.OpenChannel("session", nil)
		c.answered(time.Since(asked))
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || gone == before {
			return opened{channel, requests, err}
		}
		before = gone
	}
}

// Start implements posix.Transport. It does not wait for the host to take the command: a refusal shows as the end of the
// process, and a round trip is saved.
func (c *connection) Start(ctx context.Context, command string) (posix.Process, error) {
	if err := c.channels.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	result := make(chan opened, 1)
	go func() { result <- c.open() }()
	var o opened
	select {
	case o = <-result:
	case <-ctx.Done():
		go func() {
			if o := <-result; o.err == nil {
				go ssh.DiscardRequests(o.requests)
				_ = o.channel.Close()
			}
			c.channels.Release(1)
		}()
		return nil, ctx.Err()
	}
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(o.err, &refused):
		c.channels.Release(1)
		return nil, &host.Error{Kind: host.KindUnreachable, Host: c.name, Message: "sshd refuses another session", Err: refused,
			Remedy: "raise MaxSessions in the host's sshd_config to 10 or more"}
	case o.err != nil:
		c.channels.Release(1)
		return nil, c.lost(o.err)
	}
	p := newProcess(c, o.channel, o.requests)
	if _, err := o.channel.SendRequest("exec", false, ssh.Marshal(struct{ Command string }{command})); err != nil {
		_ = p.Close()
		return nil, c.lost(err)
	}
	return p, nil
}

// process is posix.Process by a channel. A closed channel of x/crypto goes on waiting for the host's consent, which a host
// that hangs never gives; so reads, writes and waits of ours end with closed.
type process struct {
	connection     *connection
	channel        ssh.Channel
	stdout, stderr *io.PipeReader
	ended          chan struct{}
	code           int // -1 until the host has told it
	once           sync.Once
	closed         chan struct{}
}

func newProcess(c *connection, channel ssh.Channel, requests <-chan *ssh.Request) *process {
	p := &process{connection: c, channel: channel, ended: make(chan struct{}), closed: make(chan struct{}), code: -1}
	c.mu.Lock()
	c.running[p] = true
	c.mu.Unlock()
	p.stdout, p.stderr = p.pump(channel), p.pump(channel.Stderr())
	go p.watch(requests)
	return p
}

// pumped is the buffer of a pump, in bytes. It is held for as long as the process runs, and most say little.
const pumped = 4 << 10

// pump makes reading from r end when p is closed.
func (p *process) pump(r io.Reader) *io.PipeReader {
	reader, writer := io.Pipe()
	go func() {
		_, err := io.CopyBuffer(writer, struct{ io.Reader }{r}, make([]byte, pumped))
		_ = writer.CloseWithError(err) // never fails
	}()
	return reader
}

// watch waits for the exit status and the end of the channel.
func (p *process) watch(requests <-chan *ssh.Request) {
	defer close(p.ended)
	defer p.connection.channels.Release(1)
	defer p.connection.gone.Add(1) // before another takes its place
	for r := range requests {
		switch r.Type {
		case "exit-status":
			var status struct{ Code uint32 }
			if ssh.Unmarshal(r.Payload, &status) == nil {
				p.code = int(status.Code)
			}
		case "exit-signal":
			var signal struct {
				Name       string
				Core       bool
				Error, Tag string
			}
			if ssh.Unmarshal(r.Payload, &signal) == nil {
				p.code = 128 + signals[signal.Name]
			}
		}
		if r.WantReply {
			_ = r.Reply(false, nil) // the connection's end is told elsewhere
		}
	}
}

// signals by their names in RFC 4254, section 6.10.
var signals = map[string]int{
	"HUP": int(syscall.SIGHUP), "INT": int(syscall.SIGINT), "QUIT": int(syscall.SIGQUIT), "ILL": int(syscall.SIGILL),
	"ABRT": int(syscall.SIGABRT), "FPE": int(syscall.SIGFPE), "KILL": int(syscall.SIGKILL), "SEGV": int(syscall.SIGSEGV),
	"PIPE": int(syscall.SIGPIPE), "ALRM": int(syscall.SIGALRM), "TERM": int(syscall.SIGTERM),
}

// errClosed is what a process that was given up answers.
var errClosed = errors.New("the process was given up")

// Write implements posix.Process. When it returns errClosed, b may still be read from.
func (p *process) Write(b []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := p.channel.Write(b)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-p.closed:
		return 0, errClosed
	}
}

func (p *process) CloseWrite() error { return p.channel.CloseWrite() }
func (p *process) Stdout() io.Reader { return p.stdout }
func (p *process) Stderr() io.Reader { return p.stderr }

// Close implements posix.Process.
func (p *process) Close() error {
	var err error
	p.once.Do(func() {
		close(p.closed)
		_, _ = p.stdout.CloseWithError(errClosed), p.stderr.CloseWithError(errClosed)
		err = p.channel.Close()
		p.connection.mu.Lock()
		defer p.connection.mu.Unlock()
		delete(p.connection.running, p)
	})
	return err
}

// Wait implements posix.Process.
func (p *process) Wait() (int, error) {
	select {
	case <-p.ended:
	case <-p.closed:
		select {
		case <-p.ended:
		default:
			return 0, p.connection.lost(errClosed)
		}
	}
	if p.code < 0 {
		return 0, p.connection.lost(fmt.Errorf("the process ended without a status: %w", io.ErrUnexpectedEOF))
	}
	return p.code, nil
}

// isCut reports whether err is that of a connection that the other side ended.
func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sshtest is an SSH server for tests that lets everybody in, stays alive, and answers what it is asked to run by a
// function of the test's: as a host that hangs, lies or floods would. It speaks just enough of the frames that our scripts
// answer with to get as far as the test wants. There is an SSH agent, too.
package sshtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// Server is an sshd of this process.
type Server struct {
	// Address and Port are where it listens.
	Address string
	Port    int32
	// HostKey is the fingerprint of its key.
	HostKey string

	signer  ssh.Signer
	running *running
}

// New starts a server, which ends with the test. answer is called for each exec request, in a goroutine of its own; when it
// returns, the command has ended with exit code 0. Each setup may change how users log in; without any, everybody may. It
// forwards connections to wherever it is asked to, as a jump host does.
func New(t testing.TB, answer func(*Exec), setup ...func(*ssh.ServerConfig)) *Server {
	t.Helper()
	return NewAt(t, "127.0.0.1", 0, answer, setup...)
}

// NewAt is New at an address of the loopback interface, all of 127.0.0.0/8, and a port; 0 is any that is free.
func NewAt(t testing.TB, address string, port int32, answer func(*Exec), setup ...func(*ssh.ServerConfig)) *Server {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	hostKey, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{
		NoClientAuth:      true,
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil },
	}
	for _, change := range setup {
		change(config)
	}
	config.AddHostKey(signer)
	r := &running{answer: answer, config: config, stopped: make(chan struct{}), connections: map[net.Conn]bool{}}
	r.changed.L = &r.mu
	t.Cleanup(r.stop)
	s := &Server{Address: address, Port: port, HostKey: ssh.FingerprintSHA256(hostKey), signer: signer, running: r}
	s.Listen(t, address)
	return s
}

// Signer has its key.
func (s *Server) Signer() ssh.Signer { return s.signer }

// Listen makes the server listen at another address, too, with the same port: as a machine with several interfaces does.
func (s *Server) Listen(t testing.TB, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(int(s.Port))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // before the server stops
	at, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("listening on %s", listener.Addr())
	}
	s.Port = int32(at.Port)
	s.running.going.Go(func() { s.running.accept(listener) })
}

// Certify makes the server show a certificate for its key, by the authority: for Address, from an hour ago to in an hour, and
// as change wants it to be.
func (s *Server) Certify(t testing.TB, authority ssh.Signer, change func(*ssh.Certificate)) {
	t.Helper()
	now := time.Now()
	cert := &ssh.Certificate{
		Key: s.signer.PublicKey(), CertType: ssh.HostCert, KeyId: "host", ValidPrincipals: []string{s.Address},
		ValidAfter: uint64(now.Add(-time.Hour).Unix()), ValidBefore: uint64(now.Add(time.Hour).Unix()),
	}
	if change != nil {
		change(cert)
	}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(cert, s.signer)
	if err != nil {
		t.Fatal(err)
	}
	s.running.mu.Lock()
	defer s.running.mu.Unlock()
	s.running.config.AddHostKey(signer)
}

// Trust is a setup: only users with a certificate by the authority may log in.
func Trust(authority ssh.PublicKey) func(*ssh.ServerConfig) {
	checker := &ssh.CertChecker{IsUserAuthority: func(key ssh.PublicKey) bool { return bytes.Equal(key.Marshal(), authority.Marshal()) }}
	return func(c *ssh.ServerConfig) { c.NoClientAuth, c.PublicKeyCallback = false, checker.Authenticate }
}

// AwaitConnections waits until the server has n connections, logged in or not; the test fails when it never has. One that comes and goes
// at once may not be seen.
func (s *Server) AwaitConnections(t testing.TB, n int) {
	t.Helper()
	s.running.await(t, fmt.Sprintf("%d", n), func(r *running) bool { return len(r.connections) == n })
}

// AwaitGone waits until the server has had a connection and has none any more, however short that was; the test fails when it never has.
func (s *Server) AwaitGone(t testing.TB) {
	t.Helper()
	s.running.await(t, "one that has come and gone", func(r *running) bool { return r.came && len(r.connections) == 0 })
}

func (r *running) await(t testing.TB, want string, is func(*running) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !is(r) {
		if ctx.Err() != nil {
			t.Errorf("the server has %d connections, want %s", len(r.connections), want)
			return
		}
		r.changed.Wait()
	}
}

type running struct {
	answer  func(*Exec)
	config  *ssh.ServerConfig
	stopped chan struct{}
	going   sync.WaitGroup

	mu          sync.Mutex
	changed     sync.Cond // of connections
	connections map[net.Conn]bool
	came        bool // whether there was any
}

func (r *running) stop() {
	close(r.stopped)
	r.mu.Lock()
	for c := range r.connections {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.going.Wait()
}

func (r *running) accept(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.connections[c], r.came = true, true
		r.changed.Broadcast()
		select {
		case <-r.stopped: // which has closed those before
			_ = c.Close()
		default:
		}
		r.mu.Unlock()
		r.going.Go(func() { r.serve(c) })
	}
}

func (r *running) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.connections, c)
		r.changed.Broadcast()
	}()
	r.mu.Lock()
	config := *r.config // which Certify may change
	r.mu.Unlock()
	_, channels, requests, err := ssh.NewServerConn(c, &config)
	if err != nil {
		return // that a client goes away is for the test to judge
	}
	// Each is refused, which is a sign of life.
	r.going.Go(func() { ssh.DiscardRequests(requests) })
	for open := range channels {
		if open.ChannelType() == "direct-tcpip" {
			r.going.Go(func() { r.forward(open) })
			continue
		}
		channel, asked, err := open.Accept()
		if err != nil {
			continue
		}
		r.going.Go(func() { r.session(channel, asked) })
	}
}

// forward connects the channel to where it is to lead (RFC 4254, section 7.2).
func (r *running) forward(open ssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}
	if err := ssh.Unmarshal(open.ExtraData(), &to); err != nil {
		_ = open.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	far, err := net.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = open.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer far.Close()
	channel, requests, err := open.Accept()
	if err != nil {
		return
	}
	r.going.Go(func() { ssh.DiscardRequests(requests) })
	r.going.Go(func() {
		_, _ = io.Copy(channel, far)
		_ = channel.Close()
	})
	_, _ = io.Copy(far, channel)
}

func (r *running) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	gone := make(chan struct{})
	defer close(gone)
	for request := range requests {
		var exec struct{ Command string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &exec) != nil {
			_ = request.Reply(false, nil)
			continue
		}
		_ = request.Reply(true, nil)
		e := &Exec{Command: exec.Command, Out: channel, Err: channel.Stderr(), Gone: gone, Stopped: r.stopped, in: bufio.NewReader(channel)}
		r.going.Go(func() {
			r.answer(e)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{}))
			_ = channel.Close()
		})
	}
}

// Exec is one command that a client wants to run.
type Exec struct {
	Command string
	// Out and Err are its outputs. Writing to them blocks while the client does not read, and fails when it is gone.
	Out, Err io.Writer
	// Gone is closed when the client has given the command up, Stopped when the test has ended.
	Gone, Stopped <-chan struct{}

	in *bufio.Reader
	// Mark is what frames begin with, once Greet has read it.
	Mark string
}

// Hang does nothing until the client gives up or the test ends.
func (e *Exec) Hang() {
	select {
	case <-e.Gone:
	case <-e.Stopped:
	}
}

// Greet answers as our shell does, and returns the script that it is given: "" when the client went away.
func (e *Exec) Greet() (script string) {
	_, _ = fmt.Fprintln(e.Out, "kubexm")
	script = e.Next()
	if _, rest, ok := strings.Cut(script, "N="); ok {
		e.Mark, _, _ = strings.Cut(rest, " ")
		e.Mark = strings.Trim(e.Mark, "'")
	}
	return script
}

// Next reads the next script: its length on a line, then it. Beats are skipped. "" means that the client went away.
func (e *Exec) Next() string {
	for {
		line, err := e.in.ReadString('\n')
		if err != nil {
			return ""
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		n, err := strconv.Atoi(line)
		if err != nil {
			return ""
		}
		script := make([]byte, n)
		if _, err := io.ReadFull(e.in, script); err != nil {
			return ""
		}
		return string(script)
	}
}

// Say writes a frame without a body and reports whether the client still reads.
func (e *Exec) Say(words ...string) bool {
	_, err := fmt.Fprintf(e.Out, "\n@%s - %s\n", e.Mark, strings.Join(words, " "))
	return err == nil
}

// Body writes a frame with a body and reports whether the client still reads.
func (e *Exec) Body(body string, words ...string) bool {
	_, err := fmt.Fprintf(e.Out, "\n@%s + %s\n%s", e.Mark, strings.Join(words, " "), body)
	return err == nil
}

// EndErrors ends what an observation's commands print to standard error.
func (e *Exec) EndErrors() { _, _ = fmt.Fprintf(e.Err, "\n@%s - end\n", e.Mark) }

// Begin answers the beginning of a session up to the first act: the lock is taken, and the host has no memory.
func (e *Exec) Begin() bool {
	if e.Greet() == "" || !e.Say("begun", "11") || e.Next() == "" {
		return false
	}
	return e.Say("pid", "12") && e.Say("end", "0")
}

// Files is the body of the frame "files" that answers a script: by path, in any order. The script says how paths are disguised.
func Files(script string, files map[string]string) string {
	const known = "/etc/os-release"
	before, _, _ := strings.Cut(script, known)
	prefix := before[strings.LastIndexAny(before, " '")+1:]
	var b strings.Builder
	for path, content := range files {
		fmt.Fprintf(&b, "==> %s%s <==\n%s\n", prefix, path, content)
	}
	return b.String()
}

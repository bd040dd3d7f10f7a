// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sshtest is an SSH server for tests that lets everybody in, stays alive, and answers what it is asked to run by a
// function of the test's: as a host that hangs, lies or floods would. It speaks just enough of the frames that our scripts
// answer with to get as far as the test wants.
package sshtest

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Server is an sshd of this process.
type Server struct {
	// Address and Port are where it listens.
	Address string
	Port    int32
	// HostKey is the fingerprint of its key.
	HostKey string
}

// New starts a server, which ends with the test. answer is called for each exec request, in a goroutine of its own; when it
// returns, the command has ended with exit code 0. Each setup may change how users log in; without any, everybody may.
func New(t testing.TB, answer func(*Exec), setup ...func(*ssh.ServerConfig)) *Server {
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("listening on %s", listener.Addr())
	}
	r := &running{answer: answer, config: config, stopped: make(chan struct{}), connections: map[net.Conn]bool{}}
	r.going.Go(func() { r.accept(listener) })
	t.Cleanup(func() {
		_ = listener.Close()
		r.stop()
	})
	return &Server{Address: address.IP.String(), Port: int32(address.Port), HostKey: ssh.FingerprintSHA256(hostKey)}
}

type running struct {
	answer  func(*Exec)
	config  *ssh.ServerConfig
	stopped chan struct{}
	going   sync.WaitGroup

	mu          sync.Mutex
	connections map[net.Conn]bool
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
		r.connections[c] = true
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
	}()
	_, channels, requests, err := ssh.NewServerConn(c, r.config)
	if err != nil {
		return // that a client goes away is for the test to judge
	}
	// Each is refused, which is a sign of life.
	r.going.Go(func() { ssh.DiscardRequests(requests) })
	for open := range channels {
		channel, asked, err := open.Accept()
		if err != nil {
			continue
		}
		r.going.Go(func() { r.session(channel, asked) })
	}
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

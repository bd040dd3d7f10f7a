// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Key is a key that hosts identify themselves by.
func Key() (ssh.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(private)
}

// Host is one SSH server.
type Host struct {
	// Name as plans have it.
	Name string
	Key  ssh.Signer
	// Memory is written to when Start is set, and else read.
	Memory *Memory
	Start  Start
	// Failed learns why a channel was given up. May be called concurrently.
	Failed func(error)

	asked counter
}

// Serve accepts connections until the listener is closed or ctx ends, and returns when all of them have ended. Any public
// key may log in: the listener is a loopback one.
func (h *Host) Serve(ctx context.Context, listener net.Listener) {
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil },
	}
	config.AddHostKey(h.Key)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			h.connection(conn, config)
		})
	}
}

func (h *Host) connection(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return // which the client sees
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { ssh.DiscardRequests(requests) })
	for opened := range channels {
		channel, requests, err := opened.Accept()
		if err != nil {
			continue
		}
		all.Go(func() { h.channel(channel, requests) })
	}
	_ = server.Close()
}

func (h *Host) channel(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	var command string
	for r := range requests {
		var exec struct{ Command string }
		if r.Type == "exec" && ssh.Unmarshal(r.Payload, &exec) == nil {
			command = exec.Command
		}
		if r.WantReply {
			_ = r.Reply(r.Type == "exec", nil) // the channel's end is told elsewhere
		}
		if command != "" {
			break
		}
	}
	var rest sync.WaitGroup
	defer rest.Wait()
	defer channel.Close()
	rest.Go(func() { ssh.DiscardRequests(requests) })
	s, err := h.speaker(command)
	if err != nil {
		h.Failed(err)
		return
	}
	if err := converse(channel, s); err != nil {
		h.Failed(fmt.Errorf("host %s: %w", h.Name, err))
	}
}

func (h *Host) speaker(command string) (speaker, error) {
	if h.Start == nil {
		return &player{memory: h.Memory, names: names{host: h.Name}, asked: &h.asked}, nil
	}
	p, err := h.Start(command)
	if err != nil {
		return nil, err
	}
	return newRecorder(h.Memory, h.Name, p), nil
}

// converse carries a channel from its first script to its exit status.
func converse(channel ssh.Channel, s speaker) error {
	in := bufio.NewReaderSize(channel, 64<<10)
	script, err := readScript(in)
	if err != nil {
		return err
	}
	t, err := say(channel)(s.first(script))
	if err != nil {
		return err
	}
	switch t.kind {
	case "begun":
		for {
			script, err := readScript(in)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if _, err = say(channel)(s.next(script)); err != nil {
				return err
			}
		}
	case "ready":
		if t, err = say(channel)(s.stream(in)); err != nil {
			return err
		}
	}
	if t.kind != "" {
		if t, err = say(channel)(s.rest()); err != nil {
			return err
		}
	}
	return end(channel, t)
}

// say returns a function that passes on what a speaker has said.
func say(to io.Writer) func(turn, error) (turn, error) {
	return func(t turn, err error) (turn, error) {
		if err == nil {
			_, err = io.WriteString(to, t.stdout)
		}
		return t, err
	}
}

// end sends what a process leaves behind. A client that has all of its answers need not wait for that.
func end(channel ssh.Channel, t turn) error {
	if _, err := io.WriteString(channel.Stderr(), t.stderr); err != nil {
		return unlessGone(err)
	}
	if err := channel.CloseWrite(); err != nil {
		return unlessGone(err)
	}
	_, err := channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(t.code)}))
	return unlessGone(err)
}

// unlessGone is nil where the client has closed its channel or its connection.
func unlessGone(err error) error {
	for _, gone := range []error{io.EOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}

// readScript reads a script, which follows its length on a line of its own. Empty lines before that say that a slow client lives.
func readScript(in *bufio.Reader) (string, error) {
	line := "\n"
	var err error
	for line == "\n" {
		if line, err = in.ReadString('\n'); err != nil {
			return "", err
		}
	}
	length, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || length < 0 {
		return "", fmt.Errorf("%q is not the length of a script", line)
	}
	script := make([]byte, length)
	if _, err := io.ReadFull(in, script); err != nil {
		return "", err
	}
	return string(script), nil
}

func writeScript(to io.Writer, script string) error {
	_, err := io.WriteString(to, strconv.Itoa(len(script))+"\n"+script)
	return err
}

// counter counts how often something was asked.
type counter struct {
	mu    sync.Mutex
	asked map[string]int
}

// next returns how often it was asked before.
func (c *counter) next(question string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	before := c.asked[question]
	c.asked[question] = before + 1
	return before
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// TestRefusal: sshd counts a session that ended until it comes to clean up, so a refusal is believed at the second time alone,
// and when nothing ended meanwhile.
func TestRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		refusals int64 // how many questions are refused
		ends     int64 // of our sessions, one while each of the first questions is answered
		asked    int64
		started  bool
	}{
		"none":                    {0, 0, 1, true},
		"once, of what had ended": {1, 0, 2, true},
		"while sessions end":      {3, 2, 4, true},
		"for ever":                {1 << 30, 0, 2, false},
		"for ever, after ends":    {1 << 30, 3, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			var c *connection
			var asked atomic.Int64
			client := serve(t, func(open ssh.NewChannel) {
				n := asked.Add(1)
				if n <= test.ends {
					c.gone.Add(1)
				}
				if n <= test.refusals {
					_ = open.Reject(ssh.ConnectionFailed, "open failed") // what sshd says of MaxSessions
					return
				}
				if _, requests, err := open.Accept(); err == nil {
					ssh.DiscardRequests(requests)
				}
			})
			c = newConnection("node-1", client, time.Minute, 3)
			defer func() { _ = c.close() }()
			p, err := c.Start(t.Context(), "true")
			if test.started {
				if err != nil {
					t.Fatal(err)
				}
				_ = p.Close()
			} else if host.KindOf(err) != host.KindUnreachable {
				t.Errorf("refused: %v", err)
			}
			if n := asked.Load(); n != test.asked {
				t.Errorf("asked %d times, want %d", n, test.asked)
			}
		})
	}
}

// serve is a client of an SSH server that answers each question for a channel as it is asked to.
func serve(t *testing.T, answer func(ssh.NewChannel)) *ssh.Client {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		config := &ssh.ServerConfig{NoClientAuth: true}
		config.AddHostKey(signer)
		accepted, err := listener.Accept()
		if err != nil {
			return
		}
		_, channels, requests, err := ssh.NewServerConn(accepted, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for open := range channels {
			answer(open)
		}
	}()
	client, err := ssh.Dial("tcp", listener.Addr().String(), &ssh.ClientConfig{
		User: "ops", HostKeyCallback: ssh.FixedHostKey(signer.PublicKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A hundred hosts are connected to at once, and most of their processes are waited for.
func TestAnIdleProcessIsSmall(t *testing.T) {
	const most = 32 << 10 // bytes, with the server's part
	client := serve(t, func(open ssh.NewChannel) {
		if _, requests, err := open.Accept(); err == nil {
			go ssh.DiscardRequests(requests)
		}
	})
	c := newConnection("node-1", client, time.Minute, 3)
	defer func() { _ = c.close() }()
	alive := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := alive()
	for range maxChannels {
		if _, err := c.Start(t.Context(), "true"); err != nil {
			t.Fatal(err)
		}
	}
	if each := (alive() - before) / maxChannels; each > most {
		t.Errorf("each takes %d bytes, want %d at most", each, most)
	}
}

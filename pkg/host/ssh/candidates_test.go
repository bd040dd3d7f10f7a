// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skeema/knownhosts"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// The addresses of these tests. Each may have a machine of its own, all at one port.
const (
	rightAt, otherAt, thirdAt, deadAt = "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"
	someone                           = "ops"
)

var errRefused = errors.New("refused")

// leavesNothing fails the test if a goroutine is left when all that it begins afterwards has ended.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// letIn is a setup by which those may log in, by password, whom decide lets in.
func letIn(decide func(ssh.ConnMetadata) error) func(*ssh.ServerConfig) {
	return func(c *ssh.ServerConfig) {
		c.NoClientAuth, c.PublicKeyCallback = false, nil
		c.PasswordCallback = func(m ssh.ConnMetadata, _ []byte) (*ssh.Permissions, error) { return nil, decide(m) }
	}
}

func everybody(ssh.ConnMetadata) error { return nil }

// machine is an sshd of this process that runs nothing.
func machine(t *testing.T, setup ...func(*ssh.ServerConfig)) *sshtest.Server {
	t.Helper()
	return sshtest.New(t, (*sshtest.Exec).Hang, setup...)
}

// among is how the server is found at one of the addresses.
func among(server *sshtest.Server, addresses ...string) Config {
	return Config{
		Name: "node-1", Address: addresses[0], Candidates: addresses[1:], Port: server.Port, User: someone,
		Auth: Auth{Password: secret.New("s3cret")}, HostKey: HostKey{Pinned: []string{server.HostKey}},
	}
}

// hostile accepts connections at an address and serves each. It returns what to call for their end, all of which must come from
// the other side.
func hostile(t *testing.T, address string, port int32, serve func(net.Conn)) (ended func()) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(int(port))))
	if err != nil {
		t.Fatal(err)
	}
	var going sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		going.Wait()
	})
	going.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			going.Go(func() {
				defer conn.Close()
				serve(conn)
				_, _ = io.Copy(io.Discard, conn) // until the other side ends it
			})
		}
	})
	return func() {
		_ = listener.Close()
		going.Wait()
	}
}

// packet is one of SSH before its encryption begins (RFC 4253, section 6).
func packet(payload string) string {
	padding := 16 - (5+len(payload))%8
	head := binary.BigEndian.AppendUint32(nil, uint32(1+len(payload)+padding))
	return string(append(head, byte(padding))) + payload + strings.Repeat("\x00", padding)
}

func text(s string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s }

const version = "SSH-2.0-OpenSSH_9.2\r\n"

// machinesOfOthers are what may answer at an address that is not the host's.
var machinesOfOthers = map[string]func(net.Conn){
	"never answers": func(net.Conn) {},
	"garbage": func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"+strings.Repeat("\xff\x00", 4096))
	},
	"stops after a version": func(c net.Conn) { _, _ = io.WriteString(c, version) },
	"half a line":           func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-") },
	"greets for ever":       func(c net.Conn) { pour(c, "welcome\r\n") },
	"packets for ever": func(c net.Conn) {
		_, _ = io.WriteString(c, version)
		pour(c, packet("\x02"+text("ignore me")))
	},
	"a packet of 4 GiB": func(c net.Conn) { _, _ = io.WriteString(c, version+"\xff\xff\xff\xff") },
	"goodbye": func(c net.Conn) {
		_, _ = io.WriteString(c, version+packet("\x01\x00\x00\x00\x02"+text("\x1b[2J")+text("")))
	},
}

// TestCandidatesAmongOthers: whatever answers at other addresses, the right one is found, at once, and nothing is left of the others.
func TestCandidatesAmongOthers(t *testing.T) {
	for name, serve := range machinesOfOthers {
		t.Run(name, func(t *testing.T) {
			leavesNothing(t)
			met := make(chan struct{})
			right := machine(t, letIn(func(ssh.ConnMetadata) error {
				<-met // not before the other has begun
				return nil
			}))
			var once sync.Once
			ended := hostile(t, otherAt, right.Port, func(c net.Conn) {
				once.Do(func() { close(met) })
				serve(c)
			})
			h, err := Dial(anyTime(t), among(right, otherAt, deadAt, rightAt))
			if err != nil {
				t.Fatal(err)
			}
			if h.Address() != rightAt {
				t.Errorf("found at %s", h.Address())
			}
			ended()
			right.AwaitConnections(t, 1)
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			right.AwaitConnections(t, 0)
		})
	}
}

// TestCandidateWithAnotherKey: another machine is not tried to log in to.
func TestCandidateWithAnotherKey(t *testing.T) {
	leavesNothing(t)
	met := make(chan struct{})
	right := machine(t, letIn(func(ssh.ConnMetadata) error {
		<-met
		return nil
	}))
	var tried atomic.Int64
	other := sshtest.NewAt(t, otherAt, right.Port, (*sshtest.Exec).Hang, func(c *ssh.ServerConfig) {
		c.AuthLogCallback = func(ssh.ConnMetadata, string, error) { tried.Add(1) }
	})
	go func() {
		defer close(met)
		other.AwaitGone(t)
	}()
	h, err := Dial(anyTime(t), among(right, otherAt, rightAt))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if h.Address() != rightAt || tried.Load() > 0 {
		t.Errorf("found at %s; the other was tried to log in to %d times", h.Address(), tried.Load())
	}
}

// TestPortClosesAfterAnotherKey: a machine that is to be asked for its other keys, and is gone by then, is given up.
func TestPortClosesAfterAnotherKey(t *testing.T) {
	leavesNothing(t)
	_, key := newKey(t)
	listener, err := net.Listen("tcp", net.JoinHostPort(rightAt, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var going sync.WaitGroup
	defer going.Wait()
	going.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = listener.Close()
		config := &ssh.ServerConfig{NoClientAuth: true}
		config.AddHostKey(key)
		_, _, _, _ = ssh.NewServerConn(conn, config) // which the client ends
	})
	c := Config{
		Name: "node-1", Address: rightAt, Port: int32(listener.Addr().(*net.TCPAddr).Port), Auth: Auth{Password: secret.New("s3cret")},
		HostKey: HostKey{Pinned: []string{"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"}},
	}
	ctx := anyTime(t)
	if _, err := Dial(ctx, c); host.KindOf(err) != host.KindUnreachable || ctx.Err() != nil {
		t.Errorf("kind %s: %v", host.KindOf(err), err)
	}
}

// TestCandidatesOfOneMachine: it lets us in at both addresses at the same time, and keeps one connection.
func TestCandidatesOfOneMachine(t *testing.T) {
	leavesNothing(t)
	var both sync.WaitGroup
	both.Add(2)
	server := machine(t, letIn(func(ssh.ConnMetadata) error {
		both.Done()
		both.Wait()
		return nil
	}))
	server.Listen(t, otherAt)
	h, err := Dial(anyTime(t), among(server, rightAt, otherAt, rightAt)) // one is named twice, and dialled once
	if err != nil {
		t.Fatal(err)
	}
	server.AwaitConnections(t, 1)
	if at := h.Address(); at != rightAt && at != otherAt {
		t.Errorf("found at %q", at)
	}
	_ = h.Close()
	server.AwaitConnections(t, 0)
}

// TestCandidatesThatAreAllWrong: the error is that of the most telling address, and names all.
func TestCandidatesThatAreAllWrong(t *testing.T) {
	const unreachable, otherKey, refusal = "check that the host is up", "make sure that this is the right host", "authorise the key"
	for name, test := range map[string]struct {
		addresses []string
		kind      host.Kind
		remedy    string
		says      []string
	}{
		"nothing answers": {[]string{deadAt, "127.0.0.5"}, host.KindUnreachable, unreachable,
			[]string{"127.0.0.4: cannot connect", "; 127.0.0.5: cannot connect"}},
		"another machine": {[]string{deadAt, otherAt}, host.KindHostKey, otherKey,
			[]string{"connection refused", "127.0.0.2: the host shows the ssh-ed25519 key"}},
		"a refusal": {[]string{deadAt, otherAt, rightAt}, host.KindAuth, refusal,
			[]string{"127.0.0.1: user ops may not log in", "127.0.0.2: the host shows"}},
		"broken off": {[]string{thirdAt, otherAt}, host.KindHostKey, otherKey, []string{"127.0.0.3: 127.0.0.3:"}},
		"one":        {[]string{rightAt, rightAt}, host.KindAuth, refusal, []string{"node-1: user ops may not log in"}},
	} {
		t.Run(name, func(t *testing.T) {
			leavesNothing(t)
			right := machine(t, letIn(func(ssh.ConnMetadata) error { return errRefused }))
			sshtest.NewAt(t, otherAt, right.Port, (*sshtest.Exec).Hang)
			hostile(t, thirdAt, right.Port, func(c net.Conn) {
				_, _ = io.WriteString(c, version+packet("\x01\x00\x00\x00\x02"+text("\x1b[2J"+strings.Repeat("go away ", 1000))+text("")))
			})
			_, err := Dial(anyTime(t), among(right, test.addresses...))
			var e *host.Error
			if !errors.As(err, &e) || e.Kind != test.kind || e.Host != "node-1" || !strings.Contains(e.Remedy, test.remedy) {
				t.Errorf("%s (%#v), want kind %s", err, e, test.kind)
			}
			for _, says := range test.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
			if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("not fit to be shown: %q", err)
			}
			right.AwaitConnections(t, 0)
		})
	}
}

// TestOneAddress: without candidates, an error is that of the address alone.
func TestOneAddress(t *testing.T) {
	right := machine(t, letIn(func(ssh.ConnMetadata) error { return errRefused }))
	_, other := newKey(t)
	host22 := func(at string) string { return net.JoinHostPort(at, strconv.Itoa(int(right.Port))) }
	shows := "the host shows the ssh-ed25519 key " + right.HostKey
	revoked := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(revoked, []byte("@revoked * "+lineOf(right.Signer())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		address string
		key     HostKey // the server's, if it is empty
		says    string
	}{
		"nothing answers": {address: deadAt, says: "cannot connect to " + host22(deadAt) + ": dial tcp " + host22(deadAt) + ": connect: "},
		"a refusal": {address: rightAt, says: "user ops may not log in with the credentials given: " +
			"ssh: handshake failed: ssh: unable to authenticate, attempted methods [none password], no supported methods remain"},
		"another fingerprint": {address: rightAt, key: HostKey{Pinned: []string{ssh.FingerprintSHA256(other.PublicKey())}},
			says: "the host has no key of the expected type: ssh: handshake failed: ssh: no common algorithm for host key; we offered: "},
		"another key": {address: rightAt, key: HostKey{Pinned: []string{lineOf(other)}},
			says: shows + ", which is not the pinned one; nothing was sent to it"},
		"a revoked key": {address: rightAt, key: HostKey{KnownHosts: []string{revoked}},
			says: shows + ", known_hosts has another; nothing was sent to it: knownhosts: key is revoked"},
		"a revoked key that is pinned": {address: rightAt, key: HostKey{KnownHosts: []string{revoked}, Pinned: []string{right.HostKey}},
			says: shows + ", which is revoked; nothing was sent to it"},
	} {
		t.Run(name, func(t *testing.T) {
			c := among(right, test.address)
			if len(test.key.Pinned)+len(test.key.KnownHosts) > 0 {
				c.HostKey = test.key
			}
			if _, err := Dial(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), "host node-1: "+test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

// TestAttemptsAreBounded: addresses are what an infrastructure says, and reasons what whoever answers there says.
func TestAttemptsAreBounded(t *testing.T) {
	long := strings.Repeat("a", 10*maxReason)
	a := &attempts{addresses: []string{"10.0.0.1", long, "\x1b[2J"}, errs: []error{errors.New(long), errRefused, errors.New("no\nway")}}
	said := a.Error()
	if len(said) > 3*(maxReason+len("; ")) || strings.ContainsAny(said, "\x1b\n") || !strings.HasSuffix(said, "; [2J: no way") {
		t.Errorf("%q", said)
	}
}

// TestCandidatesCancelled: all of them hang, and end at once with who asked.
func TestCandidatesCancelled(t *testing.T) {
	leavesNothing(t)
	right := machine(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var begun sync.WaitGroup
	begun.Add(2)
	hang := func(net.Conn) { begun.Done() }
	ended := []func(){hostile(t, otherAt, right.Port, hang), hostile(t, thirdAt, right.Port, hang)}
	go func() {
		begun.Wait()
		cancel()
	}()
	_, err := Dial(ctx, among(right, otherAt, thirdAt))
	if !errors.Is(err, context.Canceled) || host.KindOf(err) != host.KindUnreachable {
		t.Errorf("kind %s: %v", host.KindOf(err), err)
	}
	for _, end := range ended {
		end()
	}
}

func TestCandidatesInvalid(t *testing.T) {
	right := machine(t)
	var many []string
	for i := range maxCandidates {
		many = append(many, fmt.Sprintf("127.0.1.%d", i))
	}
	for name, test := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no address":   {func(c *Config) { c.Address, c.Candidates = "", []string{rightAt} }, "no address is given"},
		"an empty one": {func(c *Config) { c.Candidates = []string{rightAt, ""} }, "candidates[1] is empty"},
		"too many":     {func(c *Config) { c.Candidates = many }, "17 addresses; 16"},
		"anybody's key": {func(c *Config) { c.HostKey = HostKey{AcceptNew: func(ssh.PublicKey) error { return nil }} },
			"a key known beforehand"},
		"too many of a jump": {func(c *Config) { j := *c; j.Candidates = many; c.Jump = &j },
			"jump host 127.0.0.1: the host may be at 17"},
	} {
		t.Run(name, func(t *testing.T) {
			c := among(right, rightAt, otherAt)
			test.change(&c)
			if _, err := Dial(t.Context(), c); host.KindOf(err) != host.KindInvalid || !strings.Contains(err.Error(), test.says) {
				t.Errorf("kind %s: %v, want %q", host.KindOf(err), err, test.says)
			}
		})
	}
}

// TestCandidatesAreKnownEach: a key that is known at one address is not known at another, and nobody is asked about it.
func TestCandidatesAreKnownEach(t *testing.T) {
	var key ssh.PublicKey
	server := machine(t, letIn(everybody))
	server.Listen(t, otherAt)
	first := among(server, rightAt)
	first.HostKey = HostKey{AcceptNew: func(k ssh.PublicKey) error { key = k; return nil }}
	h, err := Dial(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if h.Address() != rightAt {
		t.Errorf("without candidates it is at %s", h.Address())
	}
	_ = h.Close()
	for _, known := range []string{rightAt, otherAt, ""} {
		file := filepath.Join(t.TempDir(), "known_hosts")
		var line string
		if known != "" {
			line = knownhosts.Line([]string{net.JoinHostPort(known, strconv.Itoa(int(server.Port)))}, key) + "\n"
		}
		if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		c := among(server, rightAt, otherAt)
		c.HostKey = HostKey{KnownHosts: []string{file}, AcceptNew: func(ssh.PublicKey) error {
			t.Error("asked about a key at one of several addresses")
			return nil
		}}
		h, err := Dial(t.Context(), c)
		switch {
		case known == "":
			if !errors.Is(err, ErrUnknownKey) || host.KindOf(err) != host.KindHostKey {
				t.Errorf("known nowhere: %v", err)
			}
		case err != nil:
			t.Errorf("known at %s: %v", known, err)
		case h.Address() != known:
			t.Errorf("known at %s, found at %s", known, h.Address())
		}
		if err == nil {
			_ = h.Close()
		}
	}
}

// TestCandidatesThroughJump: they are dialled through one connection to the jump host, which ends with the host's.
func TestCandidatesThroughJump(t *testing.T) {
	leavesNothing(t)
	jump, right := machine(t, letIn(everybody)), machine(t, letIn(everybody))
	sshtest.NewAt(t, otherAt, right.Port, (*sshtest.Exec).Hang)
	hostile(t, thirdAt, right.Port, machinesOfOthers["never answers"])
	const floodAt = "127.0.0.5"
	hostile(t, floodAt, right.Port, machinesOfOthers["packets for ever"])
	c := among(right, otherAt, thirdAt, floodAt, deadAt, rightAt)
	over := among(jump, deadAt, rightAt)
	c.Jump = &over
	h, err := Dial(anyTime(t), c)
	if err != nil {
		t.Fatal(err)
	}
	if h.Address() != rightAt {
		t.Errorf("found at %s", h.Address())
	}
	right.AwaitConnections(t, 1)
	jump.AwaitConnections(t, 1)
	_ = h.Close()
	right.AwaitConnections(t, 0)
	jump.AwaitConnections(t, 0)

	c.Address, c.Candidates = otherAt, []string{deadAt}
	_, err = Dial(anyTime(t), c)
	if host.KindOf(err) != host.KindHostKey || !strings.Contains(err.Error(), "127.0.0.4: cannot connect") {
		t.Errorf("behind a jump host: %v", err)
	}
	jump.AwaitConnections(t, 0)
}

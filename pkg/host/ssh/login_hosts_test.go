// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package ssh

import (
	"context"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

func TestHostKeys(t *testing.T) {
	h := pool.Hosts[0]
	_, other := newKey(t)
	ecdsa := strings.TrimSpace(must(t)(h.Exec(t.Context(), "cat", "/etc/ssh/ssh_host_ecdsa_key.pub")))
	ecdsaKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(ecdsa))
	if err != nil {
		t.Fatal(err)
	}
	line := func(key ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(key)) }
	known := func(keys ...ssh.PublicKey) []string {
		file := filepath.Join(t.TempDir(), "known_hosts")
		var content string
		for _, key := range keys {
			content += knownhosts.Line([]string{h.Address}, key) + "\n"
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{file}
	}
	refuse := errors.New("not this one")
	for name, c := range map[string]struct {
		key  HostKey
		kind host.Kind
	}{
		"fingerprint":                 {HostKey{Pinned: []string{ssh.FingerprintSHA256(h.HostKey)}}, ""},
		"fingerprint of another type": {HostKey{Pinned: []string{ssh.FingerprintSHA256(ecdsaKey)}}, ""},
		"line":                        {HostKey{Pinned: []string{line(h.HostKey)}}, ""},
		"line of another type":        {HostKey{Pinned: []string{ecdsa}}, ""},
		"one of two":                  {HostKey{Pinned: []string{line(other.PublicKey()), line(h.HostKey)}}, ""},
		"wrong fingerprint":           {HostKey{Pinned: []string{ssh.FingerprintSHA256(other.PublicKey())}}, host.KindHostKey},
		"wrong line":                  {HostKey{Pinned: []string{line(other.PublicKey())}}, host.KindHostKey},
		"pinned before all else": {HostKey{Pinned: []string{line(other.PublicKey())},
			KnownHosts: known(h.HostKey), AcceptNew: func(ssh.PublicKey) error { return nil }}, host.KindHostKey},
		"known_hosts":                   {HostKey{KnownHosts: known(h.HostKey)}, ""},
		"known_hosts, another type":     {HostKey{KnownHosts: known(ecdsaKey)}, ""},
		"known_hosts, wrong":            {HostKey{KnownHosts: known(other.PublicKey()), AcceptNew: func(ssh.PublicKey) error { return nil }}, host.KindHostKey},
		"known_hosts, unknown":          {HostKey{KnownHosts: known()}, host.KindHostKey},
		"known_hosts, first use":        {HostKey{KnownHosts: known(), AcceptNew: func(ssh.PublicKey) error { return nil }}, ""},
		"first use":                     {HostKey{AcceptNew: func(ssh.PublicKey) error { return nil }}, ""},
		"first use refused":             {HostKey{AcceptNew: func(ssh.PublicKey) error { return refuse }}, host.KindHostKey},
		"nothing to check it against":   {HostKey{}, host.KindInvalid},
		"unreadable pin":                {HostKey{Pinned: []string{"MD5:00:11"}}, host.KindInvalid},
		"known_hosts that is not there": {HostKey{KnownHosts: []string{"/nope"}}, host.KindInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			config := config(hosts.Ops)
			config.HostKey = c.key
			// A secret that must not be sent to a host with the wrong key.
			signed := &watchedSigner{Signer: h.Signer}
			config.Auth = Auth{Signers: []ssh.Signer{signed}}
			conn, err := Dial(t.Context(), config)
			if err == nil {
				_ = conn.Close()
			}
			if host.KindOf(err) != c.kind {
				t.Errorf("got %v, want kind %q", err, c.kind)
			}
			if c.kind != "" && signed.used {
				t.Error("we tried to log in all the same")
			}
			if c.kind == host.KindHostKey && !errors.As(err, new(*host.Error)) {
				t.Error("no *host.Error")
			}
		})
	}
}

// watchedSigner tells whether it was used.
type watchedSigner struct {
	ssh.Signer
	used bool
}

func (s *watchedSigner) PublicKey() ssh.PublicKey {
	s.used = true
	return s.Signer.PublicKey()
}

func must(t *testing.T) func(string, error) string {
	return func(s string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func TestLogin(t *testing.T) {
	h := pool.Hosts[0]
	private, signer := newKey(t)
	authorize := `cat >>/home/ops/.ssh/authorized_keys`
	cmd := h.Command(t.Context(), "sh", "-c", authorize)
	cmd.Stdin = strings.NewReader(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	lockedPEM := pem.EncodeToMemory(locked)
	socket := filepath.Join(t.TempDir(), "agent")
	sshtest.RunAgent(t, socket, private)
	_, unknown := newKey(t)
	for name, c := range map[string]struct {
		user string
		auth Auth
		kind host.Kind
	}{
		"key":                       {hosts.Ops, Auth{PrivateKeys: []secret.Value{pemOf(t, private)}}, ""},
		"encrypted key":             {hosts.Ops, Auth{PrivateKeys: []secret.Value{secret.New(lockedPEM)}, Passphrase: secret.New("open sesame")}, ""},
		"no passphrase":             {hosts.Ops, Auth{PrivateKeys: []secret.Value{secret.New(lockedPEM)}}, host.KindAuth},
		"wrong passphrase":          {hosts.Ops, Auth{PrivateKeys: []secret.Value{secret.New(lockedPEM)}, Passphrase: secret.New("x")}, host.KindAuth},
		"agent":                     {hosts.Ops, Auth{AgentSocket: socket}, ""},
		"no agent":                  {hosts.Ops, Auth{AgentSocket: socket + "-nope"}, host.KindAuth},
		"password":                  {hosts.SudoPW, Auth{Password: secret.New(sudoPassword)}, ""},
		"key refused, password not": {hosts.SudoPW, Auth{Signers: []ssh.Signer{unknown}, Password: secret.New(sudoPassword)}, ""},
		"wrong password":            {hosts.SudoPW, Auth{Password: secret.New("wrong")}, host.KindAuth},
		"unknown key":               {hosts.Ops, Auth{Signers: []ssh.Signer{unknown}}, host.KindAuth},
		"unknown user":              {"nobody-here", Auth{Signers: []ssh.Signer{h.Signer}}, host.KindAuth},
		"nothing":                   {hosts.Ops, Auth{}, host.KindAuth},
	} {
		t.Run(name, func(t *testing.T) {
			config := config(c.user)
			config.Auth = c.auth
			conn, err := Dial(t.Context(), config)
			if err == nil {
				_ = conn.Close()
			}
			if host.KindOf(err) != c.kind {
				t.Errorf("got %v, want kind %q", err, c.kind)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	c := config(hosts.Ops)
	c.Port = 1
	if _, err := Dial(t.Context(), c); host.KindOf(err) != host.KindUnreachable {
		t.Errorf("a closed port: %v", err)
	}
	h := pool.Hosts[1]
	if err := h.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Unpause(context.WithoutCancel(t.Context())) })
	c = config(hosts.Ops)
	c.Address, c.DialTimeout = h.Address, 500*time.Millisecond
	if _, err := Dial(t.Context(), c); host.KindOf(err) != host.KindUnreachable {
		t.Errorf("a host that hangs: %v", err)
	}
}

func TestSudo(t *testing.T) {
	c := config(hosts.NoSudo)
	h := connect(t, c)
	_, err := h.Observe(t.Context(), host.Query{})
	var e *host.Error
	if !errors.As(err, &e) || e.Kind != host.KindPrivilege || !strings.Contains(e.Error(), hosts.NoSudo) || e.Remedy == "" {
		t.Errorf("a user without sudo: %v", err)
	}
	if _, err := h.Begin(t.Context(), host.Run{ID: "x", Holder: "y"}); host.KindOf(err) != host.KindPrivilege {
		t.Errorf("a user without sudo begins: %v", err)
	}
	c = config(hosts.SudoPW)
	if _, err := connect(t, c).Observe(t.Context(), host.Query{}); host.KindOf(err) != host.KindPrivilege {
		t.Errorf("a user whose sudo wants a password: %v", err)
	}
	c.SudoPassword = secret.New("wr0ng")
	_, err = connect(t, c).Observe(t.Context(), host.Query{})
	if host.KindOf(err) != host.KindPrivilege || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("a wrong password: %v", err)
	}
	// A password that sudo does not ask for is not sent.
	c = config(hosts.Ops)
	c.SudoPassword = secret.New("unneeded")
	if _, err := connect(t, c).Observe(t.Context(), host.Query{}); err != nil {
		t.Errorf("a password that is not asked for: %v", err)
	}
}

func TestJump(t *testing.T) {
	jump := config(hosts.NoSudo)
	jump.Address = pool.Hosts[1].Address
	jump.HostKey = HostKey{Pinned: []string{ssh.FingerprintSHA256(pool.Hosts[1].HostKey)}}
	c := config(hosts.Ops)
	c.Jump = &jump
	f, err := connect(t, c).Observe(t.Context(), host.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if f.System.Hostname != pool.Hosts[0].Name {
		t.Errorf("we are on %s", f.System.Hostname)
	}
	for name, tc := range map[string]struct {
		change func(jump, c *Config)
		kind   host.Kind
		named  string
	}{
		"a jump host with another key": {func(jump, c *Config) { jump.HostKey = c.HostKey }, host.KindHostKey, "jump host " + jump.Address},
		"a jump host that lets nobody in": {
			func(jump, _ *Config) { jump.Auth = Auth{Password: secret.New("wr0ng")} }, host.KindAuth, "jump host " + jump.Address,
		},
		"a dead jump host":                {func(jump, _ *Config) { jump.Port = 1 }, host.KindUnreachable, "jump host " + jump.Address},
		"a dead host behind a jump host":  {func(_, c *Config) { c.Port = 1 }, host.KindUnreachable, "through the jump host " + jump.Address},
		"another host behind a jump host": {func(jump, c *Config) { c.HostKey = jump.HostKey }, host.KindHostKey, "key of the expected type"},
	} {
		t.Run(name, func(t *testing.T) {
			jump, c := jump, c
			c.Jump = &jump
			tc.change(&jump, &c)
			_, err := Dial(t.Context(), c)
			if host.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.named) || strings.Contains(err.Error(), "wr0ng") {
				t.Errorf("%v (%v), want %v and %q", err, host.KindOf(err), tc.kind, tc.named)
			}
		})
	}
}

// TestOnlyThroughJump: a port that answers the jump host alone is reached through it, and not otherwise.
func TestOnlyThroughJump(t *testing.T) {
	own := config(hosts.Ops)
	jump := config(hosts.Ops)
	jump.Address, jump.HostKey = pool.Hosts[1].Address, HostKey{Pinned: []string{ssh.FingerprintSHA256(pool.Hosts[1].HostKey)}}
	const port = 2022
	redirect := func(ctx context.Context, verb string) {
		_, err := pool.Hosts[0].Exec(ctx, "iptables", "--table", "nat", verb, "PREROUTING", "--protocol", "tcp", "--source", jump.Address,
			"--dport", strconv.Itoa(port), "--jump", "REDIRECT", "--to-ports", "22")
		if err != nil {
			t.Fatal(err)
		}
	}
	redirect(t.Context(), "--append")
	t.Cleanup(func() { redirect(context.WithoutCancel(t.Context()), "--delete") })
	own.Port = port
	if _, err := Dial(t.Context(), own); host.KindOf(err) != host.KindUnreachable {
		t.Fatalf("the host is to be reached through the jump host alone: %v", err)
	}
	own.Jump = &jump
	f, err := connect(t, own).Observe(t.Context(), host.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if f.System.Hostname != pool.Hosts[0].Name {
		t.Errorf("we are on %s", f.System.Hostname)
	}
}

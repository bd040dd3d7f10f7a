// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	cryptossh "golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/openssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC7KlRI4aZNDMoDfgl10PXVBxUFrSseaTrhHhVby8jLv"

// TestHostKeys: the config file's key comes before that of known_hosts, where the port counts.
func TestHostKeys(t *testing.T) {
	known := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(known, []byte("172.16.0.2 "+key+"\n[172.16.0.3]:2222 "+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hosts, err := access.New([]config.Host{
		{Name: "known", Address: "172.16.0.2", Port: 22},
		{Name: "pinned", Address: "172.16.0.2", Port: 22, HostKey: "SHA256:pin"},
		{Name: "port", Address: "172.16.0.3", Port: 2222},
		{Name: "other-port", Address: "172.16.0.3", Port: 22},
	}, access.Options{KnownHosts: []string{known, filepath.Join(t.TempDir(), "missing")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"known": key, "pinned": "SHA256:pin", "port": key, "other-port": "", "nobody": ""} {
		if got := hosts.HostKey(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestUnreadable: all hosts whose key file cannot be read are named at once.
func TestUnreadable(t *testing.T) {
	_, err := access.New([]config.Host{{Name: "a", PrivateKeyPath: "/nonexistent"}, {Name: "b", PrivateKeyPath: "/nonexistent"}}, access.Options{})
	if err == nil || !strings.Contains(err.Error(), "host a") || !strings.Contains(err.Error(), "host b") {
		t.Errorf("got %v", err)
	}
}

func TestUnknownName(t *testing.T) {
	hosts, err := access.New(nil, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hosts.Dial(t.Context(), "nobody"); host.KindOf(err) != host.KindInvalid {
		t.Errorf("got %v", err)
	}
}

// TestSharedKeys: hosts with one key are found, whichever way the key is pinned.
func TestSharedKeys(t *testing.T) {
	const (
		pinned      = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA0/fXqx0SfFLhF88hACNiYrXn19LsKbAcJHeaAHSf+L"
		fingerprint = "SHA256:CMImvU4dFoLiiZ5GHxusRzhTnzS0v1sTm9fM9+yhKEo"
		another     = "SHA256:AAAAAU4dFoLiiZ5GHxusRzhTnzS0v1sTm9fM9+yhKEo"
	)
	h, err := access.New([]config.Host{
		{Name: "b", Address: "10.0.0.2", HostKey: fingerprint}, {Name: "a", Address: "10.0.0.1", HostKey: pinned + " root@image"},
		{Name: "c", Address: "10.0.0.3", HostKey: another}, {Name: "d", Address: "10.0.0.4"}, {Name: "e", Address: "10.0.0.5"},
	}, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"a", "b"}}, h.SharedKeys()); diff != "" {
		t.Error(diff)
	}
}

// server is an sshd that lets in one user, with one password or key.
func server(t *testing.T, user string, password string, key cryptossh.PublicKey) *sshtest.Server {
	t.Helper()
	return sshtest.New(t, func(e *sshtest.Exec) { e.Hang() }, func(c *cryptossh.ServerConfig) {
		c.NoClientAuth = false
		c.PublicKeyCallback = func(m cryptossh.ConnMetadata, shown cryptossh.PublicKey) (*cryptossh.Permissions, error) {
			if key == nil || m.User() != user || !bytes.Equal(shown.Marshal(), key.Marshal()) {
				return nil, errors.New("refused")
			}
			return nil, nil
		}
		c.PasswordCallback = func(m cryptossh.ConnMetadata, given []byte) (*cryptossh.Permissions, error) {
			if password == "" || m.User() != user || string(given) != password {
				return nil, errors.New("refused")
			}
			return nil, nil
		}
	})
}

// keyFile is a new private key in a file, and its public half.
func keyFile(t *testing.T) (string, ed25519.PrivateKey, cryptossh.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := cryptossh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := cryptossh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return path, private, key
}

// agentWith is an SSH agent with keys, the only one that there is here, and OpenSSH with a config that names no others.
func agentWith(t *testing.T, keys ...any) *openssh.Client {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "agent")
	sshtest.RunAgent(t, socket, keys...)
	t.Setenv("SSH_AUTH_SOCK", socket)
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte("IdentityFile "+dir+"/none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &openssh.Client{Config: config}
}

// TestJumpHost: a host is reached through its jump host, and both are given what they are to be given: a key in a file, the agent's, or a
// password.
func TestJumpHost(t *testing.T) {
	path, _, filed := keyFile(t)
	_, private, agents := keyFile(t)
	for name, test := range map[string]struct{ host, jump *sshtest.Server }{
		"the host by a key, the jump host by the agent":      {server(t, "ops", "", filed), server(t, "jump", "", agents)},
		"the host by the agent, the jump host by a key":      {server(t, "ops", "", agents), server(t, "jump", "", filed)},
		"the host by the agent, the jump host by a password": {server(t, "ops", "", agents), server(t, "jump", "let me", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			h := config.Host{Name: "node1", Address: test.host.Address, Port: test.host.Port, User: "ops", HostKey: test.host.HostKey}
			j := config.ProxyJump{Host: test.jump.Address, Port: test.jump.Port, User: "jump", HostKey: test.jump.HostKey}
			if strings.HasPrefix(name, "the host by a key") {
				h.PrivateKeyPath = path
			}
			if strings.HasSuffix(name, "by a key") {
				j.PrivateKeyPath = path
			}
			if strings.HasSuffix(name, "by a password") {
				j.Password = secret.New("let me")
			}
			h.ProxyJump = j
			hosts, err := access.New([]config.Host{h}, access.Options{OpenSSH: agentWith(t, private)})
			if err != nil {
				t.Fatal(err)
			}
			connected, err := hosts.Dial(t.Context(), "node1")
			if err != nil {
				t.Fatal(err)
			}
			test.jump.AwaitConnections(t, 1)
			test.host.AwaitConnections(t, 1)
			if err := connected.Close(); err != nil {
				t.Error(err)
			}
			test.jump.AwaitConnections(t, 0)
			if got := hosts.JumpHostKey("node1"); got != test.jump.HostKey {
				t.Errorf("the jump host is known by %q", got)
			}
			if got := hosts.JumpPrivateKey("node1"); got.IsZero() != (j.PrivateKeyPath == "") {
				t.Errorf("the jump host's private key is %q", got.Reveal())
			}
		})
	}
}

// TestJumpHostKey: a jump host that nobody knows is refused, with the field that says its key. Accepted, it is known from then on to all
// hosts behind it, and to known_hosts.
func TestJumpHostKey(t *testing.T) {
	path, _, key := keyFile(t)
	far, jump := server(t, "ops", "", key), server(t, "ops", "", key)
	j := config.ProxyJump{Host: jump.Address, Port: jump.Port, User: "ops", PrivateKeyPath: path}
	all := []config.Host{
		{Name: "node1", Address: far.Address, Port: far.Port, User: "ops", PrivateKeyPath: path, HostKey: far.HostKey, ProxyJump: j},
		{Name: "node2", Address: far.Address, Port: far.Port, User: "ops", PrivateKeyPath: path, HostKey: far.HostKey, ProxyJump: j},
	}
	hosts, err := access.New(all, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = hosts.Dial(t.Context(), "node1")
	var refused *host.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Message, "jump host 127.0.0.1") ||
		!strings.Contains(refused.Remedy, "compare it with the jump host's own") || !strings.Contains(refused.Remedy, "set proxyJump.hostKey") {
		t.Errorf("error %+v", err)
	}
	known := filepath.Join(t.TempDir(), "known_hosts")
	if hosts, err = access.New(all, access.Options{AcceptNew: known}); err != nil {
		t.Fatal(err)
	}
	connected, err := hosts.Dial(t.Context(), "node1")
	if err != nil {
		t.Fatal(err)
	}
	_ = connected.Close()
	pin := hosts.JumpHostKey("node2")
	if access.Fingerprint(pin) != jump.HostKey || hosts.JumpHostKey("nobody") != "" {
		t.Errorf("the jump host is known by %q", pin)
	}
	again, err := access.New(all, access.Options{KnownHosts: []string{known}})
	if err != nil {
		t.Fatal(err)
	}
	if got := again.JumpHostKey("node1"); got != pin {
		t.Errorf("known_hosts has %q, want %q", got, pin)
	}
}

// TestKnownHostsBesidesPins: a key that known_hosts revokes is refused, whoever else knows it, and no key is right because known_hosts
// has it where the config file has another.
func TestKnownHostsBesidesPins(t *testing.T) {
	path, _, key := keyFile(t)
	_, _, another := keyFile(t)
	far, jump := server(t, "ops", "", key), server(t, "ops", "", key)
	lineOf := func(key cryptossh.PublicKey) string {
		return strings.TrimSpace(string(cryptossh.MarshalAuthorizedKey(key)))
	}
	listed := func(s *sshtest.Server) string {
		return fmt.Sprintf("[%s]:%d %s\n", s.Address, s.Port, lineOf(s.Signer().PublicKey()))
	}
	revoked := func(s *sshtest.Server) string { return "@revoked * " + lineOf(s.Signer().PublicKey()) + "\n" }
	jumpIsRevoked := jump.HostKey + ", which is revoked"
	isRevoked := "node1: the host shows the ssh-ed25519 key " + far.HostKey + ", which is revoked"
	for name, test := range map[string]struct {
		known, hostKey, jumpKey, says string
	}{
		"listed":                             {known: listed(far)},
		"declared":                           {known: listed(far), hostKey: far.HostKey},
		"listed and revoked":                 {known: listed(far) + revoked(far), says: isRevoked},
		"declared and revoked":               {known: revoked(far), hostKey: far.HostKey, says: isRevoked},
		"declared by its line and revoked":   {known: revoked(far), hostKey: lineOf(far.Signer().PublicKey()), says: isRevoked},
		"another declared than listed":       {known: listed(far), hostKey: lineOf(another), says: "not the pinned one"},
		"the jump host's listed and revoked": {known: listed(far) + listed(jump) + revoked(jump), jumpKey: "listed", says: jumpIsRevoked},
		"the jump host's another declared":   {known: listed(far) + listed(jump), jumpKey: lineOf(another), says: "not the pinned one"},
	} {
		t.Run(name, func(t *testing.T) {
			known := filepath.Join(t.TempDir(), "known_hosts")
			if err := os.WriteFile(known, []byte(test.known), 0o600); err != nil {
				t.Fatal(err)
			}
			h := config.Host{Name: "node1", Address: far.Address, Port: far.Port, User: "ops", PrivateKeyPath: path, HostKey: test.hostKey}
			if test.jumpKey != "" {
				h.ProxyJump = config.ProxyJump{Host: jump.Address, Port: jump.Port, User: "ops", PrivateKeyPath: path}
				if test.jumpKey != "listed" {
					h.ProxyJump.HostKey = test.jumpKey
				}
			}
			hosts, err := access.New([]config.Host{h}, access.Options{KnownHosts: []string{known}})
			if err != nil {
				t.Fatal(err)
			}
			connected, err := hosts.Dial(t.Context(), "node1")
			if err == nil {
				_ = connected.Close()
			}
			if test.says == "" && err != nil ||
				test.says != "" && (host.KindOf(err) != host.KindHostKey || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("error %v, want %q", err, test.says)
			}
		})
	}
}

// TestNothingToLogInWith: it is said whose login it is, and what to do.
func TestNothingToLogInWith(t *testing.T) {
	client := agentWith(t)
	hosts, err := access.New([]config.Host{{Name: "node1", Address: "127.0.0.1", Port: 1, User: "ops", HostKey: key}}, access.Options{OpenSSH: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	_, err = hosts.Dial(t.Context(), "node1")
	if host.KindOf(err) != host.KindAuth || !strings.Contains(err.Error(), "node1: there is nothing to log in with as ops: no SSH agent runs") {
		t.Errorf("error %v", err)
	}
}

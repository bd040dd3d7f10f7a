// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package openssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	cryptossh "golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
)

// machine is one with OpenSSH: a directory with keys and a config.
type machine struct {
	dir    string
	client *Client
	public map[string]string
}

// newMachine has the keys open, other (without a passphrase) and locked (with one), and a config of these lines, in which $DIR is the
// directory. There is no agent.
func newMachine(t *testing.T, config string) *machine {
	t.Helper()
	t.Setenv(agentVariable, "")
	m := &machine{dir: t.TempDir(), public: map[string]string{}}
	for _, name := range []string{"open", "other", "locked"} {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		block, err := cryptossh.MarshalPrivateKey(private, "")
		if name == "locked" {
			block, err = cryptossh.MarshalPrivateKeyWithPassphrase(private, "", []byte("passphrase"))
		}
		if err != nil {
			t.Fatal(err)
		}
		key, err := cryptossh.NewPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		m.public[name] = strings.TrimSpace(string(cryptossh.MarshalAuthorizedKey(key)))
		m.write(t, name, string(pem.EncodeToMemory(block)))
		m.write(t, name+".pub", m.public[name]+" somebody@somewhere\n")
	}
	m.client = &Client{Config: m.write(t, "config", strings.ReplaceAll(config, "$DIR", m.dir))}
	return m
}

func (m *machine) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runAgent has an agent run, at a socket of this name.
func (m *machine) runAgent(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(m.dir, name)
	sshtest.RunAgent(t, path)
	return path
}

// describe is what would be logged in with, by the names of keys and sockets.
func (m *machine) describe(t *testing.T, auth ssh.Auth) []string {
	t.Helper()
	var has []string
	for _, key := range auth.PrivateKeys {
		id, err := ssh.ReadIdentity(key)
		if err != nil {
			t.Fatal(err)
		}
		has = append(has, "key "+m.nameOf(id.Public))
	}
	if auth.AgentSocket != "" {
		has = append(has, "agent "+filepath.Base(auth.AgentSocket))
	}
	for _, key := range auth.AgentKeys {
		has = append(has, "of it "+m.nameOf(key))
	}
	return has
}

func (m *machine) nameOf(public string) string {
	for name, key := range m.public {
		if strings.HasPrefix(public, key) {
			return name
		}
	}
	return public
}

// TestAuth: what OpenSSH's config means is what OpenSSH says. Each names a key, as OpenSSH would take those in the home directory of who
// runs this otherwise.
func TestAuth(t *testing.T) {
	for name, test := range map[string]struct {
		config string
		agent  string // the socket that the environment names
		want   []string
		err    string
	}{
		"a key by address": {
			config: "Host 10.20.0.*\n IdentityFile $DIR/open\nHost *\n IdentityFile $DIR/none\n", want: []string{"key open"}},
		"a key by Match": {
			config: "Match user ops\n IdentityFile $DIR/open\nMatch user root\n IdentityFile $DIR/other\n", want: []string{"key open"}},
		"tokens": {config: "IdentityFile $DIR/%r.%h.%p\n", want: []string{"key other"}},
		"no keys and no agent": {
			config: "IdentityFile $DIR/none\n",
			err:    "no SSH agent runs (SSH_AUTH_SOCK is not set), and OpenSSH has no key for ops@10.20.0.11"},
		"a key with a passphrase": {
			config: "IdentityFile $DIR/locked\n", err: "$DIR/locked is encrypted: start an agent, and add it there (ssh-add $DIR/locked)"},
		"the environment's agent": {config: "IdentityFile $DIR/locked\n", agent: "agent", want: []string{"agent agent"}},
		"the config's agent":      {config: "IdentityAgent $DIR/its\nIdentityFile $DIR/open\n", want: []string{"key open", "agent its"}},
		"no agent, says the config": {
			config: "IdentityAgent none\nIdentityFile $DIR/open\n", agent: "agent", want: []string{"key open"}},
		"an agent that is gone, and a key": {config: "IdentityFile $DIR/open\n", agent: "gone", want: []string{"key open"}},
		"an agent that is gone":            {config: "IdentityFile $DIR/none\n", agent: "gone", err: "the SSH agent does not answer"},
		"these keys of the agent alone": {
			config: "IdentitiesOnly yes\nIdentityFile $DIR/locked\nIdentityFile $DIR/other.pub\nIdentityFile $DIR/open\n", agent: "agent",
			want: []string{"key open", "agent agent", "of it locked", "of it other", "of it open"}},
		"none of the agent's keys": {config: "IdentitiesOnly yes\nIdentityFile $DIR/none\n", agent: "agent", err: "names no key that is there"},
		"what is not supported":    {config: "IdentityFile $DIR/%C\n", err: "the token %C is not supported: give the host a privateKeyPath"},
		"a config that OpenSSH refuses": {
			config: "IdentityFil $DIR/open\n", err: "OpenSSH does not say what its config means for 10.20.0.11 (ssh -G)"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, test.config)
			m.runAgent(t, "agent")
			m.runAgent(t, "its")
			open, err := os.ReadFile(filepath.Join(m.dir, "other"))
			if err != nil {
				t.Fatal(err)
			}
			m.write(t, "ops.10.20.0.11.2222", string(open))
			if test.agent != "" {
				t.Setenv(agentVariable, filepath.Join(m.dir, test.agent))
			}
			auth, err := m.client.Auth(t.Context(), Login{Address: "10.20.0.11", Port: 2222, User: "ops"})
			want := strings.ReplaceAll(test.err, "$DIR", m.dir)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Fatalf("error %v, want %q", err, want)
			}
			if err == nil && !slices.Equal(m.describe(t, auth), test.want) {
				t.Error(cmp.Diff(test.want, m.describe(t, auth)))
			}
		})
	}
}

// TestExpand: names of files are as ssh_config(5) has them.
func TestExpand(t *testing.T) {
	t.Setenv("FLEET", "prod")
	e, err := newExpander(Login{Address: "node1", Port: 2222, User: "ops"}, "user ops\nhostname 10.20.0.11\n")
	if err != nil {
		t.Fatal(err)
	}
	e.home, e.tokens['d'] = "/home/100%", "/home/100%"
	for name, want := range map[string]string{
		"~/.ssh/id": "/home/100%/.ssh/id", "%d/%n-%h-%p-%r": "/home/100%/node1-10.20.0.11-2222-ops", "/keys/${FLEET}/%%": "/keys/prod/%",
		"/keys/%x": "", "/keys/%": "", "/keys/${NONE}": "", "/keys/${FLEET": "",
	} {
		if got, err := e.expand(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
}

// TestComplete: what is said stays, and a jump host is logged in to by a key of its own.
func TestComplete(t *testing.T) {
	m := newMachine(t, `Match host bastion.example.org user jump
 IdentityFile $DIR/open
Match user ops
 IdentityFile $DIR/other
Match all
 IdentityFile $DIR/none
`)
	said := ssh.Auth{AgentSocket: "/run/its"}
	shared := &ssh.Config{Address: "bastion.example.org", User: "jump"}
	c := ssh.Config{Name: "node1", Address: "10.20.0.11", User: "ops", Auth: said, Jump: shared}
	if err := m.client.Complete(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(m.describe(t, c.Auth), m.describe(t, c.Jump.Auth)); got != "[agent its] [key open]" {
		t.Errorf("the logins are %s", got)
	}
	if !shared.Auth.IsZero() {
		t.Error("what hosts share is changed")
	}
	c = ssh.Config{Name: "node1", Address: "10.20.0.11", User: "ops"}
	if err := m.client.Complete(t.Context(), &c); err != nil || !slices.Equal(m.describe(t, c.Auth), []string{"key other"}) {
		t.Errorf("%v, %v", m.describe(t, c.Auth), err)
	}
	c = ssh.Config{Name: "node1", Address: "10.20.0.11", User: "ops", Jump: &ssh.Config{Address: "10.20.0.9", User: "nobody"}}
	err := m.client.Complete(t.Context(), &c)
	if host.KindOf(err) != host.KindAuth || !strings.Contains(err.Error(), "node1: jump host 10.20.0.9: there is nothing to log in with as nobody") {
		t.Errorf("error %v", err)
	}
}

// TestCheck: where an agent runs, it is asked at the login. Else there must be a key.
func TestCheck(t *testing.T) {
	m := newMachine(t, "IdentityFile $DIR/none\n")
	if err := m.client.Check("10.20.0.11", 22, "ops"); err == nil {
		t.Error("there is neither an agent nor a key")
	}
	t.Setenv(agentVariable, "/run/its")
	if err := m.client.Check("10.20.0.11", 22, "ops"); err != nil {
		t.Errorf("there is an agent: %v", err)
	}
}

// TestWithoutOpenSSH: where there is no ssh there is no config of it, and an agent all the same.
func TestWithoutOpenSSH(t *testing.T) {
	m := newMachine(t, "IdentityFile $DIR/open\n")
	t.Setenv("PATH", m.dir)
	t.Setenv(agentVariable, m.runAgent(t, "agent"))
	auth, err := m.client.Auth(t.Context(), Login{Address: "10.20.0.11", Port: 22, User: "ops"})
	if err != nil || fmt.Sprint(m.describe(t, auth)) != "[agent agent]" {
		t.Errorf("%v, %v", m.describe(t, auth), err)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
)

// TestRecorder: a key that was accepted is known from then on, for that port alone, in a file that only its owner reads.
func TestRecorder(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := cryptossh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	// As OpenSSH writes it.
	for begin, at := range map[string]ssh.Config{
		"172.16.0.2 ": {Address: "172.16.0.2"}, "[172.16.0.2]:2222 ": {Address: "172.16.0.2", Port: 2222},
		"2001:db8::2 ": {Address: "2001:db8::2"}, "[2001:db8::2]:2222 ": {Address: "2001:db8::2", Port: 2222},
	} {
		r := &ssh.Recorder{File: filepath.Join(t.TempDir(), "new", "known_hosts")}
		var told string
		if err := r.Accept(at, func(line string) { told = line })(key); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(r.File); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if content, err := os.ReadFile(r.File); err != nil || !strings.HasPrefix(string(content), begin) {
			t.Errorf("it is written as %s, %v", content, err)
		}
		known, err := ssh.ReadKnown(r.File)
		if err != nil {
			t.Fatal(err)
		}
		if got := known.Pin(at); got == "" || got != told {
			t.Errorf("the pin is %q, and %q was told", got, told)
		}
		if at.Port++; known.Pin(at) != "" {
			t.Errorf("another port has the pin %q", known.Pin(at))
		}
	}
	if err := ssh.Refuse(key); !errors.Is(err, ssh.ErrUnknownKey) {
		t.Errorf("got %v", err)
	}
}

// TestRecorderAcceptsOneKeyOfAMachine: a jump host that is dialled for many hosts at once, before anybody knows it, is added once, and
// another key that answers in its place is refused.
func TestRecorderAcceptsOneKeyOfAMachine(t *testing.T) {
	r := &ssh.Recorder{File: filepath.Join(t.TempDir(), "known_hosts")}
	at := ssh.Config{Address: "172.16.0.2"}
	first, other := newKey(t), newKey(t)
	for range 2 {
		if err := r.Accept(at, nil)(first); err != nil {
			t.Fatal(err)
		}
	}
	err := r.Accept(at, func(string) { t.Error("it was accepted") })(other)
	if err == nil || !strings.Contains(err.Error(), cryptossh.FingerprintSHA256(first)) {
		t.Errorf("of another key: %v", err)
	}
	if content, err := os.ReadFile(r.File); err != nil || strings.Count(string(content), "\n") != 1 {
		t.Errorf("the file has %s, %v", content, err)
	}
}

func newKey(t *testing.T) cryptossh.PublicKey {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := cryptossh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestKnowsNobody(t *testing.T) {
	known, err := ssh.ReadKnown()
	if err != nil || known.Pin(ssh.Config{Address: "172.16.0.2"}) != "" {
		t.Errorf("no files know nobody; got %v", err)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Auth is what a user logs in with. All that is given is tried, in the order of the fields.
type Auth struct {
	Signers []ssh.Signer
	// PrivateKeys are PEM files' contents; Passphrase opens those that are encrypted.
	PrivateKeys []secret.Value
	Passphrase  secret.Value
	// AgentSocket is the path of an ssh-agent's socket (SSH_AUTH_SOCK).
	AgentSocket string
	// Password is given once: to password or to keyboard-interactive authentication, whichever the host asks for first.
	Password secret.Value
}

// methods returns the methods, and a function to be called when they are not needed any more.
func (a Auth) methods(ctx context.Context) ([]ssh.AuthMethod, func(), error) {
	done := func() {}
	signers := append([]ssh.Signer(nil), a.Signers...)
	for i, key := range a.PrivateKeys {
		signer, err := parseKey(key, a.Passphrase)
		if err != nil {
			return nil, done, fmt.Errorf("private key %d: %w", i+1, err)
		}
		signers = append(signers, signer)
	}
	if a.AgentSocket != "" {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", a.AgentSocket)
		if err != nil {
			return nil, done, fmt.Errorf("ssh-agent: %w", err)
		}
		done = func() { _ = conn.Close() }
		fromAgent, err := agent.NewClient(conn).Signers()
		if err != nil {
			done()
			return nil, func() {}, fmt.Errorf("ssh-agent: %w", err)
		}
		signers = append(signers, fromAgent...)
	}
	var methods []ssh.AuthMethod
	if len(signers) > 0 {
		methods = append(methods, ssh.PublicKeys(signers...))
	}
	if !a.Password.IsZero() {
		once := &password{value: a.Password}
		methods = append(methods, ssh.PasswordCallback(once.give), ssh.KeyboardInteractive(once.answer))
	}
	if len(methods) == 0 {
		done()
		return nil, func() {}, errors.New("neither a key nor an agent nor a password is given")
	}
	return methods, done, nil
}

// password is given once for a login. Whoever asks for it again, or for more, has refused it or wants something else, and a host
// that is not honest should not be able to ask for it under another name.
type password struct {
	value secret.Value
	given bool
}

var errAsksAgain = errors.New("the host has refused the password, or asks for more than a password")

// give answers password authentication (RFC 4252, section 8).
func (p *password) give() (string, error) {
	if p.given {
		return "", errAsksAgain
	}
	p.given = true
	return string(p.value.Reveal()), nil
}

// answer gives the password to the one question, not to be echoed, of keyboard-interactive authentication (RFC 4256). Rounds without
// a question are allowed.
func (p *password) answer(_, _ string, questions []string, echos []bool) ([]string, error) {
	switch {
	case len(questions) == 0:
		return nil, nil
	case len(questions) > 1 || echos[0]:
		return nil, errAsksAgain
	}
	value, err := p.give()
	if err != nil {
		return nil, err
	}
	return []string{value}, nil
}

func parseKey(key, passphrase secret.Value) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(key.Reveal())
	var missing *ssh.PassphraseMissingError
	if !errors.As(err, &missing) {
		return signer, err
	}
	if passphrase.IsZero() {
		return nil, errors.New("it is encrypted and no passphrase is given")
	}
	return ssh.ParsePrivateKeyWithPassphrase(key.Reveal(), passphrase.Reveal())
}

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
	// Password is given to password and keyboard-interactive authentication.
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
		methods = append(methods, ssh.Password(string(a.Password.Reveal())), ssh.KeyboardInteractive(a.answer))
	}
	if len(methods) == 0 {
		done()
		return nil, func() {}, errors.New("neither a key nor an agent nor a password is given")
	}
	return methods, done, nil
}

// answer gives the password to every question that is not to be echoed.
func (a Auth) answer(_, _ string, questions []string, echos []bool) ([]string, error) {
	answers := make([]string, len(questions))
	for i := range questions {
		if echos[i] {
			return nil, errors.New("the host asks for more than a password")
		}
		answers[i] = string(a.Password.Reveal())
	}
	return answers, nil
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

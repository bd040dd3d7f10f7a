// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Auth is what a user logs in with. All that is given is tried, in the order of the fields.
type Auth struct {
	// Certificates are users' certificates in OpenSSH's format ("ssh-ed25519-cert-v01@openssh.com AAAA…"), each for the key of one
	// of Signers or PrivateKeys.
	Certificates []secret.Value
	Signers      []ssh.Signer
	// PrivateKeys are PEM files' contents; Passphrase opens those that are encrypted.
	PrivateKeys []secret.Value
	Passphrase  secret.Value
	// AgentSocket is the path of an ssh-agent's socket (SSH_AUTH_SOCK). AgentKeys are the public keys ("ssh-ed25519 AAAA…") of those of
	// its keys that are tried, all if there are none: hosts end a connection after a few keys that they do not know (MaxAuthTries).
	AgentSocket string
	AgentKeys   []string
	// Password is given once: to password or to keyboard-interactive authentication, whichever the host asks for first.
	Password secret.Value
}

// IsZero reports whether nothing is given to log in with.
func (a Auth) IsZero() bool {
	return len(a.Certificates)+len(a.Signers)+len(a.PrivateKeys) == 0 && a.AgentSocket == "" && a.Password.IsZero()
}

// login is an Auth that was read, to log in with at several addresses at once.
type login struct {
	signers  []ssh.Signer
	password secret.Value
	close    func() // to be called when it is not needed any more
}

// read reads a. ctx bounds for how long the agent is there, too.
func (a Auth) read(ctx context.Context) (*login, error) {
	l := &login{signers: slices.Clone(a.Signers), password: a.Password, close: func() {}}
	for i, key := range a.PrivateKeys {
		signer, err := parseKey(key, a.Passphrase)
		if err != nil {
			return nil, fmt.Errorf("private key %d: %w", i+1, err)
		}
		l.signers = append(l.signers, signer)
	}
	var certified []ssh.Signer
	for i, certificate := range a.Certificates {
		signer, err := certify(certificate, l.signers)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", i+1, err)
		}
		certified = append(certified, signer)
	}
	l.signers = append(certified, l.signers...)
	if a.AgentSocket != "" {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", a.AgentSocket)
		if err != nil {
			return nil, fmt.Errorf("ssh-agent: %w", err)
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // it may wait for a person
		l.close = func() {
			stop()
			_ = conn.Close()
		}
		fromAgent, err := agent.NewClient(conn).Signers()
		if err != nil {
			l.close()
			return nil, fmt.Errorf("ssh-agent: %w", err)
		}
		l.signers = append(l.signers, slices.DeleteFunc(fromAgent, func(s ssh.Signer) bool { return l.has(s) || !a.triesOfAgent(s) })...)
	}
	if len(l.signers) == 0 && l.password.IsZero() {
		l.close()
		if a.AgentSocket != "" {
			return nil, errors.New("the ssh-agent has no key for the host: add it (ssh-add)")
		}
		return nil, errors.New("neither a key nor an agent nor a password is given")
	}
	return l, nil
}

// has reports whether a key is tried already.
func (l *login) has(key ssh.Signer) bool {
	return slices.ContainsFunc(l.signers, func(s ssh.Signer) bool {
		return slices.Equal(s.PublicKey().Marshal(), key.PublicKey().Marshal())
	})
}

// triesOfAgent reports whether a key of the agent is tried. A certificate is tried with the key that it is for.
func (a Auth) triesOfAgent(signer ssh.Signer) bool {
	key := signer.PublicKey()
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key
	}
	return len(a.AgentKeys) == 0 || slices.ContainsFunc(a.AgentKeys, func(line string) bool {
		named, err := parseLine(line)
		return err == nil && slices.Equal(named.Marshal(), key.Marshal())
	})
}

// certify makes the one of the signers whose key the certificate is for show the certificate.
func certify(certificate secret.Value, signers []ssh.Signer) (ssh.Signer, error) {
	key, err := parseLine(string(certificate.Reveal()))
	if err != nil {
		return nil, err
	}
	cert, ok := key.(*ssh.Certificate)
	switch {
	case !ok:
		return nil, errors.New("it is a public key without a certificate")
	case cert.CertType != ssh.UserCert:
		return nil, errors.New("it is not a user's certificate but a host's")
	}
	for _, signer := range signers {
		if slices.Equal(signer.PublicKey().Marshal(), cert.Key.Marshal()) {
			return ssh.NewCertSigner(cert, signer)
		}
	}
	return nil, fmt.Errorf("the private key that it is for (%s) is not given", ssh.FingerprintSHA256(cert.Key))
}

// methods are those of one login.
func (l *login) methods() []ssh.AuthMethod {
	var methods []ssh.AuthMethod
	if len(l.signers) > 0 {
		methods = append(methods, ssh.PublicKeys(l.signers...))
	}
	if !l.password.IsZero() {
		once := &password{value: l.password}
		methods = append(methods, ssh.PasswordCallback(once.give), ssh.KeyboardInteractive(once.answer))
	}
	return methods
}

// certificates are those that are shown, but for an agent's.
func (l *login) certificates() []*ssh.Certificate {
	var all []*ssh.Certificate
	for _, signer := range l.signers {
		if cert, ok := signer.PublicKey().(*ssh.Certificate); ok {
			all = append(all, cert)
		}
	}
	return all
}

// password is given once for a login. Anyone who asks for it again, or for more, has refused it or wants something else, and a host
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

// Identity is what a file has that IdentityFile in ssh_config names.
type Identity struct {
	// Public is the public key as in authorized_keys, "" where the file does not say it.
	Public string
	// Private says that the file has the private key, and Encrypted that this needs a passphrase.
	Private, Encrypted bool
}

// ReadIdentity reads the content of such a file: a private key, or a public one whose private key an agent has.
func ReadIdentity(content secret.Value) (Identity, error) {
	signer, err := ssh.ParsePrivateKey(content.Reveal())
	var missing *ssh.PassphraseMissingError
	switch {
	case err == nil:
		return Identity{Public: authorizedLine(signer.PublicKey()), Private: true}, nil
	case errors.As(err, &missing) && missing.PublicKey != nil:
		return Identity{Public: authorizedLine(missing.PublicKey), Private: true, Encrypted: true}, nil
	case errors.As(err, &missing):
		return Identity{Private: true, Encrypted: true}, nil
	}
	key, err := parseLine(string(content.Reveal()))
	if err != nil {
		return Identity{}, errors.New("it is neither a private key nor a public one")
	}
	return Identity{Public: authorizedLine(key)}, nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// HostKey says which key the host must show. One of its fields but Revoked must be set; Pinned comes before KnownHosts, and
// AcceptNew is asked only about hosts that neither knows. A certificate by one of the Authorities is right, whatever
// Pinned and KnownHosts say; one that is not right counts as its key alone, and AcceptNew is not asked about that.
type HostKey struct {
	// Pinned are keys, any of which is right: a fingerprint ("SHA256:…") or an authorized_keys line ("ssh-ed25519 AAAA…").
	Pinned []string
	// KnownHosts are files in OpenSSH's format.
	KnownHosts []string
	// Authorities are the public keys ("ssh-ed25519 AAAA…") of those who sign hosts' keys. A certificate must be valid now and have
	// the Name of the host or the address dialled among its principals, letter by letter: there are no wildcards, and a
	// certificate without principals is for nobody. One for an address says who is at that address: with Candidates, some of which
	// may be other machines' with certificates of their own, have the Name signed. KnownHosts' @cert-authority lines are not such
	// authorities.
	Authorities []string
	// Revoked are keys that are never right, of hosts or of Authorities, written as in Pinned. So are those that KnownHosts mark
	// @revoked.
	Revoked []string
	// AcceptNew decides about the key of a host that is not known: nil accepts it, for the caller to record.
	AcceptNew func(key ssh.PublicKey) error
}

// algorithmsOf are the signature algorithms for keys of a type, best first.
var algorithmsOf = map[string][]string{
	ssh.KeyAlgoED25519:  {ssh.KeyAlgoED25519},
	ssh.KeyAlgoECDSA256: {ssh.KeyAlgoECDSA256},
	ssh.KeyAlgoECDSA384: {ssh.KeyAlgoECDSA384},
	ssh.KeyAlgoECDSA521: {ssh.KeyAlgoECDSA521},
	ssh.KeyAlgoRSA:      {ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
}

// keyTypes in our order of preference.
var keyTypes = []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA}

// keyFailure is why a host's key is refused.
type keyFailure struct {
	message, remedy string
	cause           error
	revoked         bool // so that no other key is asked for
}

// keyCheck checks the key of one host. It is used for one handshake at a time.
type keyCheck struct {
	address, name string
	fingerprints  []string
	keys          []ssh.PublicKey
	known         *knownhosts.HostKeyDB
	authorities   []ssh.PublicKey
	revoked       []string // fingerprints
	acceptNew     func(ssh.PublicKey) error
	// types that are still worth asking the host for, without a certificate and with one.
	types, certifiedTypes []string

	passed  bool
	failure *keyFailure
	shown   ssh.PublicKey
}

// checker is for the host at endpoint, which is address with a port.
func (k HostKey) checker(endpoint, address, name string) (*keyCheck, error) {
	if len(k.Pinned)+len(k.KnownHosts)+len(k.Authorities) == 0 && k.AcceptNew == nil {
		return nil, errors.New("none is given: pin one, name a known_hosts file or the authority of its certificate, " +
			"or accept the key at first use")
	}
	c := &keyCheck{address: address, name: name, acceptNew: k.AcceptNew, types: slices.Clone(keyTypes)}
	for i, pin := range k.Pinned {
		key, fingerprint, err := parsePin(pin)
		switch {
		case err != nil:
			return nil, fmt.Errorf("pinned[%d] %w", i, err)
		case key == nil:
			c.fingerprints = append(c.fingerprints, fingerprint)
		default:
			c.keys = append(c.keys, key)
		}
	}
	for i, line := range k.Authorities {
		authority, err := parseAuthority(line)
		if err != nil {
			return nil, fmt.Errorf("authorities[%d]: %w", i, err)
		}
		c.authorities, c.certifiedTypes = append(c.authorities, authority), slices.Clone(keyTypes)
	}
	for i, pin := range k.Revoked {
		_, fingerprint, err := parsePin(pin)
		if err != nil {
			return nil, fmt.Errorf("revoked[%d] %w", i, err)
		}
		c.revoked = append(c.revoked, fingerprint)
	}
	if len(k.KnownHosts) > 0 {
		var err error
		if c.known, err = knownhosts.NewDB(k.KnownHosts...); err != nil {
			return nil, fmt.Errorf("known_hosts: %w", err)
		}
	}
	switch {
	case len(c.fingerprints) > 0:
	case len(c.keys) > 0:
		c.types = nil
		for _, key := range c.keys {
			c.types = append(c.types, key.Type())
		}
	case c.known != nil:
		if known := c.known.HostKeys(endpoint); len(known) > 0 {
			c.types = nil
			for _, key := range known {
				c.types = append(c.types, key.Type())
			}
		}
	}
	return c, nil
}

// parsePin reads a fingerprint, or a line of which the key is returned, too.
func parsePin(pin string) (ssh.PublicKey, string, error) {
	pin = strings.TrimSpace(pin)
	if strings.HasPrefix(pin, "SHA256:") {
		return nil, strings.TrimRight(pin, "="), nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(pin))
	if err != nil {
		return nil, "", fmt.Errorf("is neither SHA256:… nor a line of a public key file: %w", err)
	}
	if _, ok := key.(*ssh.Certificate); ok { // would never match: keys are compared
		return nil, "", errors.New("is a certificate; give the key that it is for, or its authority")
	}
	return key, ssh.FingerprintSHA256(key), nil
}

func (c *keyCheck) pinned() bool { return len(c.fingerprints)+len(c.keys) > 0 }

// restricted reports whether not every type of key will do.
func (c *keyCheck) restricted() bool { return len(c.types) < len(keyTypes) }

// algorithms to offer: those for the types of key that can be right, with a certificate first.
func (c *keyCheck) algorithms() []string {
	var with, without []string
	for _, t := range keyTypes {
		for _, algorithm := range algorithmsOf[t] {
			if slices.Contains(c.certifiedTypes, t) {
				with = append(with, algorithm+certified)
			}
			if slices.Contains(c.types, t) {
				without = append(without, algorithm)
			}
		}
	}
	return append(with, without...)
}

func (c *keyCheck) reset() { c.passed, c.failure, c.shown = false, nil, nil }

// another is the same check of another connection.
func (c *keyCheck) another() *keyCheck {
	other := *c
	other.types, other.certifiedTypes = slices.Clone(c.types), slices.Clone(c.certifiedTypes)
	other.reset()
	return &other
}

// tryOthers reports whether the host may have another key that is the pinned one, and asks for those next.
func (c *keyCheck) tryOthers() bool {
	if c.failure == nil || c.failure.revoked || c.shown == nil || len(c.fingerprints) == 0 {
		return false
	}
	shown := func(t string) bool { return strings.TrimSuffix(c.shown.Type(), certified) == t }
	c.types, c.certifiedTypes = slices.DeleteFunc(c.types, shown), slices.DeleteFunc(c.certifiedTypes, shown)
	return len(c.types) > 0
}

// verify is ssh.HostKeyCallback. The reason for a refusal is kept in failure. Later key exchanges of a connection show the key
// again: what was right is not asked about again, and its certificate may have expired since.
func (c *keyCheck) verify(hostname string, remote net.Addr, key ssh.PublicKey) error {
	if c.passed && slices.Equal(c.shown.Marshal(), key.Marshal()) {
		return nil
	}
	c.passed, c.shown = false, key
	if c.failure = c.judge(hostname, remote, key); c.failure != nil {
		return errors.New(c.failure.message)
	}
	c.passed = true
	return nil
}

func (c *keyCheck) judge(hostname string, remote net.Addr, key ssh.PublicKey) *keyFailure {
	cert, isCertificate := key.(*ssh.Certificate)
	if isCertificate {
		key = cert.Key
	}
	// Where known_hosts files decide, they say so themselves.
	decided := c.known != nil && !isCertificate && !c.pinned()
	if c.lists(key) || !decided && c.marksRevoked(hostname, remote, key) {
		return &keyFailure{
			message: fmt.Sprintf("the host shows the %s key %s, which is revoked; nothing was sent to it",
				key.Type(), ssh.FingerprintSHA256(key)),
			remedy:  "make sure that this is the right host, and give it another key",
			revoked: true,
		}
	}
	if !isCertificate {
		return c.judgeKey(hostname, remote, key, c.acceptNew)
	}
	refused := c.judgeCertificate(hostname, remote, cert)
	if refused == nil || c.judgeKey(hostname, remote, key, nil) == nil {
		return nil
	}
	return refused
}

func (c *keyCheck) judgeKey(hostname string, remote net.Addr, key ssh.PublicKey, acceptNew func(ssh.PublicKey) error) *keyFailure {
	fingerprint := ssh.FingerprintSHA256(key)
	changed := "make sure that this is the right host: it may have been set up anew (then correct the pin), or somebody is in between"
	if c.pinned() {
		for _, k := range c.keys {
			if slices.Equal(k.Marshal(), key.Marshal()) {
				return nil
			}
		}
		if slices.Contains(c.fingerprints, fingerprint) {
			return nil
		}
		return &keyFailure{
			message: fmt.Sprintf("the host shows the %s key %s, which is not the pinned one; nothing was sent to it", key.Type(), fingerprint),
			remedy:  changed,
		}
	}
	if c.known != nil {
		err := lookUp(c.known, hostname, remote, key)
		switch {
		case err == nil:
			return nil
		case !knownhosts.IsHostUnknown(err):
			return &keyFailure{
				message: fmt.Sprintf("the host shows the %s key %s, known_hosts has another; nothing was sent to it", key.Type(), fingerprint),
				remedy:  changed, cause: err,
			}
		}
	}
	if acceptNew == nil && c.known == nil {
		return &keyFailure{
			message: fmt.Sprintf("the host shows the %s key %s without a certificate; nothing was sent to it", key.Type(), fingerprint),
			remedy:  "have its key signed by the authority given, and name the certificate in its sshd_config (HostCertificate)",
		}
	}
	if acceptNew == nil {
		return &keyFailure{
			message: fmt.Sprintf("the host is not in known_hosts; it shows the %s key %s", key.Type(), fingerprint),
			remedy:  "add it to known_hosts after comparing the key, or pin it",
		}
	}
	if err := acceptNew(key); err != nil {
		return &keyFailure{message: fmt.Sprintf("the host's %s key %s is not accepted", key.Type(), fingerprint), cause: err}
	}
	return nil
}

// Fingerprint is the fingerprint of a key that is pinned, whichever way (see HostKey.Pinned): equal pins of one key are equal by it. A
// pin that is no key is returned as it is.
func Fingerprint(pin string) string {
	pin = strings.TrimSpace(pin)
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(pin))
	if err != nil {
		return strings.TrimRight(pin, "=")
	}
	return ssh.FingerprintSHA256(key)
}

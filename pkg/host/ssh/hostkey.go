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

// HostKey says which key the host must show. One of its fields must be set; Pinned comes before KnownHosts, and AcceptNew
// is asked only about hosts that neither knows.
type HostKey struct {
	// Pinned are keys, any of which is right: a fingerprint ("SHA256:…") or an authorized_keys line ("ssh-ed25519 AAAA…").
	Pinned []string
	// KnownHosts are files in OpenSSH's format.
	KnownHosts []string
	// AcceptNew decides about the key of a host that is not known: nil accepts it, for the caller to record.
	AcceptNew func(key ssh.PublicKey) error
}

// algorithmsOf are the signature algorithms for keys of a type, best first. Host certificates are not supported.
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
}

// keyCheck checks the key of one host. It is used for one handshake at a time.
type keyCheck struct {
	endpoint     string
	fingerprints []string
	keys         []ssh.PublicKey
	known        *knownhosts.HostKeyDB
	acceptNew    func(ssh.PublicKey) error
	// types that are still worth asking the host for.
	types []string

	passed  bool
	failure *keyFailure
	shown   ssh.PublicKey
}

func (k HostKey) checker(endpoint string) (*keyCheck, error) {
	if len(k.Pinned) == 0 && len(k.KnownHosts) == 0 && k.AcceptNew == nil {
		return nil, errors.New("none is given: pin one, name a known_hosts file, or accept the key at first use")
	}
	c := &keyCheck{endpoint: endpoint, acceptNew: k.AcceptNew, types: slices.Clone(keyTypes)}
	for i, pin := range k.Pinned {
		pin = strings.TrimSpace(pin)
		if strings.HasPrefix(pin, "SHA256:") {
			c.fingerprints = append(c.fingerprints, strings.TrimRight(pin, "="))
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(pin))
		if err != nil {
			return nil, fmt.Errorf("pinned[%d] is neither SHA256:… nor a line of a public key file: %w", i, err)
		}
		c.keys = append(c.keys, key)
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

func (c *keyCheck) pinned() bool { return len(c.fingerprints)+len(c.keys) > 0 }

// restricted reports whether not every type of key will do.
func (c *keyCheck) restricted() bool { return len(c.types) < len(keyTypes) }

// algorithms to offer: those for the types of key that can be right.
func (c *keyCheck) algorithms() []string {
	var algorithms []string
	for _, t := range keyTypes {
		if slices.Contains(c.types, t) {
			algorithms = append(algorithms, algorithmsOf[t]...)
		}
	}
	return algorithms
}

func (c *keyCheck) reset() { c.passed, c.failure, c.shown = false, nil, nil }

// tryOthers reports whether the host may have another key that is the pinned one, and asks for those next.
func (c *keyCheck) tryOthers() bool {
	if c.failure == nil || c.shown == nil || len(c.fingerprints) == 0 {
		return false
	}
	c.types = slices.DeleteFunc(c.types, func(t string) bool { return t == c.shown.Type() })
	return len(c.types) > 0
}

// verify is ssh.HostKeyCallback. The reason for a refusal is kept in failure.
func (c *keyCheck) verify(hostname string, remote net.Addr, key ssh.PublicKey) error {
	c.shown = key
	if c.failure = c.judge(hostname, remote, key); c.failure != nil {
		return errors.New(c.failure.message)
	}
	c.passed = true
	return nil
}

func (c *keyCheck) judge(hostname string, remote net.Addr, key ssh.PublicKey) *keyFailure {
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
		return &keyFailure{message: fmt.Sprintf("the host shows the %s key %s, which is not the pinned one; nothing was sent to it", key.Type(), fingerprint), remedy: changed}
	}
	if c.known != nil {
		err := c.known.HostKeyCallback()(hostname, remote, key)
		switch {
		case err == nil:
			return nil
		case !knownhosts.IsHostUnknown(err):
			return &keyFailure{message: fmt.Sprintf("the host shows the %s key %s, known_hosts has another; nothing was sent to it", key.Type(), fingerprint), remedy: changed, cause: err}
		}
	}
	if c.acceptNew == nil {
		return &keyFailure{message: fmt.Sprintf("the host is not in known_hosts; it shows the %s key %s", key.Type(), fingerprint), remedy: "add it to known_hosts after comparing the key, or pin it"}
	}
	if err := c.acceptNew(key); err != nil {
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

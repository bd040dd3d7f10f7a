// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// forger signs with a key of its own what it says another has signed.
type forger struct {
	ssh.Signer
	says ssh.PublicKey
}

func (f forger) PublicKey() ssh.PublicKey { return f.says }

// sha1Authority signs as OpenSSH did before 8.2.
func sha1Authority(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	old, err := ssh.NewSignerWithAlgorithms(signer.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	if err != nil {
		t.Fatal(err)
	}
	return old
}

func lineOf(s ssh.Signer) string { return authorizedLine(s.PublicKey()) }

func TestHostCertificates(t *testing.T) {
	_, ca := newKey(t)
	_, otherCA := newKey(t)
	sha1 := sha1Authority(t)
	ago := func(d time.Duration) uint64 { return uint64(time.Now().Add(-d).Unix()) }
	trusted := HostKey{Authorities: []string{lineOf(otherCA), lineOf(ca)}}
	knownHosts := func(t *testing.T, line string) []string {
		file := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{file}
	}
	for name, test := range map[string]struct {
		authority ssh.Signer // nil for no certificate
		change    func(*ssh.Certificate)
		key       func(t *testing.T, fingerprint string) HostKey // nil for trusted
		says      string                                         // "" for a host that is right
	}{
		"for its address": {authority: ca},
		"for its name":    {authority: ca, change: func(c *ssh.Certificate) { c.ValidPrincipals = []string{"node-2", "node-1"} }},
		"for ever":        {authority: ca, change: func(c *ssh.Certificate) { c.ValidAfter, c.ValidBefore = 0, ssh.CertTimeInfinity }},
		"expired": {authority: ca, change: func(c *ssh.Certificate) { c.ValidBefore = ago(time.Minute) },
			says: "it is valid from 20"},
		"not yet valid": {authority: ca, change: func(c *ssh.Certificate) { c.ValidAfter = ago(-30 * time.Minute) },
			says: "it is valid from 20"},
		"never valid": {authority: ca, change: func(c *ssh.Certificate) { c.ValidAfter = ssh.CertTimeInfinity },
			says: "it is valid from the end of time"},
		"for another host": {authority: ca, change: func(c *ssh.Certificate) { c.ValidPrincipals = []string{"node-2", "\x1b[2J"} },
			says: "it is for node-2, [2J, and not for node-1 or 127.0.0.1"},
		"for a name like it": {authority: ca, change: func(c *ssh.Certificate) { c.ValidPrincipals = []string{"node-*"} },
			says: "it is for node-*, and not"},
		"for everybody": {authority: ca, change: func(c *ssh.Certificate) { c.ValidPrincipals = nil },
			says: "it is for nobody by name, and not"},
		"for very many": {
			authority: ca, change: func(c *ssh.Certificate) { c.ValidPrincipals = slices.Repeat([]string{"node-2"}, 2000) },
			says: "it is for node-2, node-2",
		},
		"a user's": {authority: ca, change: func(c *ssh.Certificate) { c.CertType = ssh.UserCert },
			says: "it is not a host's but a user's"},
		"by another authority": {authority: sha1, says: "its authority is not one of those given"},
		"forged":               {authority: forger{otherCA, ca.PublicKey()}, says: "certificate signature does not verify"},
		"with SHA-1": {authority: sha1, key: func(*testing.T, string) HostKey { return HostKey{Authorities: []string{lineOf(sha1)}} },
			says: "it is signed with SHA-1"},
		"with an option that nobody knows": {
			authority: ca, change: func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"only-on": "sundays"} },
			says: `unsupported critical option "only-on"`,
		},
		"revoked": {authority: ca, says: "which is revoked", key: func(_ *testing.T, fingerprint string) HostKey {
			return HostKey{Authorities: trusted.Authorities, Revoked: []string{fingerprint}}
		}},
		"revoked though it is pinned": {authority: ca, says: "which is revoked", key: func(_ *testing.T, fingerprint string) HostKey {
			return HostKey{Pinned: []string{fingerprint}, Revoked: []string{fingerprint}}
		}},
		"by an authority that is revoked": {authority: ca, says: "its authority is revoked", key: func(*testing.T, string) HostKey {
			return HostKey{Authorities: trusted.Authorities, Revoked: []string{lineOf(ca)}}
		}},
		"by an authority that known_hosts revoke": {authority: ca, says: "its authority is revoked", key: func(t *testing.T, _ string) HostKey {
			return HostKey{Authorities: trusted.Authorities, KnownHosts: knownHosts(t, "@revoked * "+lineOf(ca)+"\n")}
		}},
		"none": {says: "without a certificate"},
		"none, and it is pinned": {key: func(_ *testing.T, fingerprint string) HostKey {
			return HostKey{Authorities: trusted.Authorities, Pinned: []string{fingerprint}}
		}},
		"expired, and its key is pinned": {authority: ca, change: func(c *ssh.Certificate) { c.ValidBefore = ago(time.Minute) },
			key: func(_ *testing.T, fingerprint string) HostKey {
				return HostKey{Authorities: trusted.Authorities, Pinned: []string{fingerprint}}
			}},
		"expired, and another fingerprint is pinned": {authority: ca, change: func(c *ssh.Certificate) { c.ValidBefore = ago(time.Minute) },
			says: "it is valid from 20", key: func(*testing.T, string) HostKey {
				return HostKey{Authorities: trusted.Authorities, Pinned: []string{Fingerprint(lineOf(otherCA))}}
			}},
		"right, and another key is pinned": {authority: ca, key: func(*testing.T, string) HostKey {
			return HostKey{Authorities: trusted.Authorities, Pinned: []string{lineOf(otherCA)}}
		}},
		"expired, and anybody is welcome": {authority: ca, change: func(c *ssh.Certificate) { c.ValidBefore = ago(time.Minute) },
			says: "it is valid from 20", key: func(*testing.T, string) HostKey {
				return HostKey{Authorities: trusted.Authorities, AcceptNew: func(ssh.PublicKey) error { return nil }}
			}},
		"that nobody asked for": {authority: ca, key: func(_ *testing.T, fingerprint string) HostKey {
			return HostKey{Pinned: []string{fingerprint}}
		}},
		"by a plain key, of which nobody is an authority": {authority: ca, says: "is not the pinned one",
			key: func(*testing.T, string) HostKey { return HostKey{Pinned: []string{lineOf(ca)}} }},
	} {
		t.Run(name, func(t *testing.T) {
			leavesNothing(t)
			tried := 0
			server := machine(t, letIn(func(ssh.ConnMetadata) error { tried++; return nil }))
			if test.authority != nil {
				server.Certify(t, test.authority, test.change)
			}
			c := among(server, rightAt)
			c.HostKey = trusted
			if test.key != nil {
				c.HostKey = test.key(t, server.HostKey)
			}
			h, err := Dial(anyTime(t), c)
			if err == nil {
				defer h.Close()
			}
			var e *host.Error
			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says == "":
			case !errors.As(err, &e) || e.Kind != host.KindHostKey || !strings.Contains(err.Error(), test.says) || e.Remedy == "":
				t.Errorf("%v, want it to say %q", err, test.says)
			case tried > 0 || len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\x1b\n"):
				t.Errorf("tried to log in %d times; %q", tried, err)
			}
		})
	}
}

func TestAuthoritiesInvalid(t *testing.T) {
	_, ca := newKey(t)
	server := machine(t)
	for name, key := range map[string]HostKey{
		"nothing":         {Authorities: []string{""}},
		"a fingerprint":   {Authorities: []string{ssh.FingerprintSHA256(ca.PublicKey())}},
		"with options":    {Authorities: []string{`cert-authority,principals="x" ` + lineOf(ca)}},
		"of known_hosts":  {Authorities: []string{"@cert-authority *.example.com " + lineOf(ca)}},
		"a certificate":   {Authorities: []string{certificateOf(t, ca, ca)}},
		"two lines":       {Authorities: []string{lineOf(ca) + "\n" + lineOf(ca)}},
		"a line before":   {Authorities: []string{"# ours\n" + lineOf(ca)}},
		"revoked alone":   {Revoked: []string{lineOf(ca)}},
		"revoked garbage": {Authorities: []string{lineOf(ca)}, Revoked: []string{"serial: 1"}},
		"revoked, of which only the key is compared": {Authorities: []string{lineOf(ca)}, Revoked: []string{certificateOf(t, ca, ca)}},
		"pinned, of which only the key is compared":  {Pinned: []string{certificateOf(t, ca, ca)}},
	} {
		t.Run(name, func(t *testing.T) {
			c := among(server, rightAt)
			c.HostKey = key
			if _, err := Dial(t.Context(), c); host.KindOf(err) != host.KindInvalid {
				t.Errorf("kind %s: %v", host.KindOf(err), err)
			}
		})
	}
}

// certificateOf is a user's, for the key of the signer.
func certificateOf(t *testing.T, ca, signer ssh.Signer) string {
	t.Helper()
	line, err := (&UserCA{signer: ca}).Sign(lineOf(signer), someone, time.Hour, time.Now(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestAlgorithms: certificates are asked for where an authority is given, first, and SHA-1 is not.
func TestAlgorithms(t *testing.T) {
	_, ca := newKey(t)
	const first, last = ssh.CertAlgoED25519v01, ssh.KeyAlgoRSASHA256
	for name, test := range map[string]struct {
		key         HostKey
		first, last string
		count       int
	}{
		"a fingerprint":       {HostKey{Pinned: []string{"SHA256:x"}}, ssh.KeyAlgoED25519, last, 6},
		"a line":              {HostKey{Pinned: []string{lineOf(ca)}}, ssh.KeyAlgoED25519, ssh.KeyAlgoED25519, 1},
		"an authority":        {HostKey{Authorities: []string{lineOf(ca)}}, first, last, 12},
		"authority and a pin": {HostKey{Authorities: []string{lineOf(ca)}, Pinned: []string{lineOf(ca)}}, first, ssh.KeyAlgoED25519, 7},
	} {
		check, err := test.key.checker("node-1:22", "node-1", "node-1")
		if err != nil {
			t.Fatal(err)
		}
		offered := check.algorithms()
		supported := slices.Concat(ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys)
		unknown := func(a string) bool { return !slices.Contains(supported, a) }
		if len(offered) != test.count || offered[0] != test.first || offered[len(offered)-1] != test.last ||
			slices.ContainsFunc(offered, unknown) {
			t.Errorf("%s: %v", name, offered)
		}
	}
}

// TestLaterKeyExchange: a connection shows its key again, hours later, too.
func TestLaterKeyExchange(t *testing.T) {
	_, signer := newKey(t)
	_, other := newKey(t)
	asked := 0
	check, err := HostKey{AcceptNew: func(ssh.PublicKey) error { asked++; return nil }}.checker("node-1:22", "node-1", "node-1")
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []ssh.PublicKey{signer.PublicKey(), signer.PublicKey(), other.PublicKey()} {
		if err := check.verify("node-1:22", &net.TCPAddr{}, key); err != nil {
			t.Error(err)
		}
		if want := []int{1, 1, 2}[i]; asked != want {
			t.Errorf("after key %d: asked %d times, want %d", i, asked, want)
		}
	}
}

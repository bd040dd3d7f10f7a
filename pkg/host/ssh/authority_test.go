// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

func newKey(t *testing.T) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return private, signer
}

// pemOf is the content of a private key file.
func pemOf(t *testing.T, key ed25519.PrivateKey) secret.Value {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return secret.New(pem.EncodeToMemory(block))
}

func newUserCA(t *testing.T) *UserCA {
	t.Helper()
	private, _ := newKey(t)
	ca, err := NewUserCA(pemOf(t, private))
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestUserCASigns(t *testing.T) {
	ca := newUserCA(t)
	_, user := newKey(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, permits := range map[string][]Permit{"commands alone": nil, "a jump": {PermitPortForwarding}} {
		t.Run(name, func(t *testing.T) {
			line, err := ca.Sign(lineOf(user), someone, 10*time.Minute, now, "run-1", permits...)
			if err != nil {
				t.Fatal(err)
			}
			key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			cert, ok := key.(*ssh.Certificate)
			if !ok || strings.Contains(line, "\n") || !strings.HasPrefix(line, "ssh-ed25519-cert-v01@openssh.com AAAA") {
				t.Fatalf("not a certificate: %q", line)
			}
			var extensions []Permit
			for e := range maps.Keys(cert.Extensions) {
				extensions = append(extensions, Permit(e))
			}
			if !bytes.Equal(cert.Key.Marshal(), user.PublicKey().Marshal()) || authorizedLine(cert.SignatureKey) != ca.PublicKey() ||
				cert.CertType != ssh.UserCert || cert.KeyId != "run-1" || cert.Serial == 0 || len(cert.CriticalOptions) > 0 ||
				!slices.Equal(cert.ValidPrincipals, []string{someone}) ||
				!slices.Equal(extensions, permits) {
				t.Errorf("%+v", cert)
			}
			for at, valid := range map[time.Duration]bool{
				-61 * time.Second: false, -time.Minute: true, 0: true, 10*time.Minute - time.Second: true, 10 * time.Minute: false,
			} {
				checker := ssh.CertChecker{Clock: func() time.Time { return now.Add(at) }}
				if err := checker.CheckCert(someone, cert); (err == nil) != valid {
					t.Errorf("after %s: %v", at, err)
				}
			}
		})
	}
}

func TestUserCARefuses(t *testing.T) {
	ca := newUserCA(t)
	_, signer := newKey(t)
	user, now := lineOf(signer), time.Now()
	for name, sign := range map[string]func() (string, error){
		"no key":               func() (string, error) { return ca.Sign("", someone, time.Hour, now, "x") },
		"a fingerprint":        func() (string, error) { return ca.Sign(Fingerprint(user), someone, time.Hour, now, "x") },
		"options":              func() (string, error) { return ca.Sign("no-pty "+user, someone, time.Hour, now, "x") },
		"two keys":             func() (string, error) { return ca.Sign(user+"\n"+user, someone, time.Hour, now, "x") },
		"a certificate":        func() (string, error) { return ca.Sign(certificateOf(t, signer, signer), someone, time.Hour, now, "x") },
		"nobody":               func() (string, error) { return ca.Sign(user, "", time.Hour, now, "x") },
		"two principals":       func() (string, error) { return ca.Sign(user, "ops,root", time.Hour, now, "x") },
		"a principal's option": func() (string, error) { return ca.Sign(user, "no-pty ops", time.Hour, now, "x") },
		"a line break":         func() (string, error) { return ca.Sign(user, "ops\nroot", time.Hour, now, "x") },
		"a long principal":     func() (string, error) { return ca.Sign(user, strings.Repeat("o", maxPrincipal+1), time.Hour, now, "x") },
		"too short":            func() (string, error) { return ca.Sign(user, someone, time.Minute-1, now, "x") },
		"too long":             func() (string, error) { return ca.Sign(user, someone, 24*time.Hour+1, now, "x") },
		"backwards":            func() (string, error) { return ca.Sign(user, someone, -time.Hour, now, "x") },
		"no time":              func() (string, error) { return ca.Sign(user, someone, time.Hour, time.Time{}, "x") },
		"no ID":                func() (string, error) { return ca.Sign(user, someone, time.Hour, now, "") },
		"an ID for terminals":  func() (string, error) { return ca.Sign(user, someone, time.Hour, now, "\x1b[2J") },
		"a long ID":            func() (string, error) { return ca.Sign(user, someone, time.Hour, now, strings.Repeat("x", maxKeyID+1)) },
		"a terminal":           func() (string, error) { return ca.Sign(user, someone, time.Hour, now, "x", "permit-pty") },
	} {
		t.Run(name, func(t *testing.T) {
			if line, err := sign(); err == nil || line != "" || len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("%q, %v", line, err)
			}
		})
	}
	if _, err := NewLogin(ca, "", time.Hour, now, "x"); err == nil {
		t.Error("a login for nobody")
	}
	private, _ := newKey(t)
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]secret.Value{
		"none": {}, "garbage": secret.New("-----BEGIN"), "a public key": secret.New(user), "encrypted": secret.New(pem.EncodeToMemory(locked)),
	} {
		if _, err := NewUserCA(key); err == nil || !strings.Contains(err.Error(), "private key of the user CA") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUserCASignsWithSHA2: sshd refuses what RSA keys have signed with SHA-1.
func TestUserCASignsWithSHA2(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := NewUserCA(secret.New(pem.EncodeToMemory(block)))
	if err != nil {
		t.Fatal(err)
	}
	_, user := newKey(t)
	parsed, err := parseLine(certificateOf(t, ca.signer, user))
	if err != nil {
		t.Fatal(err)
	}
	if cert, ok := parsed.(*ssh.Certificate); !ok || !slices.Contains(algorithmsOf[ssh.KeyAlgoRSA], cert.Signature.Format) {
		t.Errorf("signed as %+v", parsed)
	}
}

// TestUserCAIsNotPrinted: by the ways that print what a pointer leads to.
func TestUserCAIsNotPrinted(t *testing.T) {
	private, _ := newKey(t)
	ca, err := NewUserCA(pemOf(t, private))
	if err != nil {
		t.Fatal(err)
	}
	login, err := NewLogin(ca, someone, time.Hour, time.Now(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	seed := strings.Trim(fmt.Sprint([]byte(private[:8])), "[]")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		printed := fmt.Sprintf(verb+verb+verb, ca, *ca, login)
		if strings.Contains(printed, seed) || strings.Contains(printed, fmt.Sprintf("%x", []byte(private[:8]))) {
			t.Errorf("%s prints the key: %s", verb, printed)
		}
	}
}

func TestUserCertificates(t *testing.T) {
	ca, otherCA := newUserCA(t), newUserCA(t)
	private, user := newKey(t)
	now := time.Now()
	login := func(by *UserCA, principal string, at time.Time) Auth {
		a, err := NewLogin(by, principal, time.Minute, at, "run-1")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	const credentials = "correct the SSH credentials"
	line := secret.New(certificateOf(t, ca.signer, user))
	with := func(signer ssh.Signer, certificates ...secret.Value) Auth {
		return Auth{Certificates: certificates, Signers: []ssh.Signer{signer}}
	}
	hostCert := &ssh.Certificate{
		Key: user.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{someone}, ValidBefore: ssh.CertTimeInfinity,
	}
	if err := hostCert.SignCert(rand.Reader, ca.signer); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		auth   Auth
		says   string // "" for who may log in
		remedy string
	}{
		"minted":            {login(ca, someone, now), "", ""},
		"for a private key": {Auth{Certificates: []secret.Value{line}, PrivateKeys: []secret.Value{pemOf(t, private)}}, "", ""},
		"for a signer":      {with(user, line), "", ""},
		"the key alone":     {Auth{PrivateKeys: []secret.Value{pemOf(t, private)}}, "user ops may not log in", "authorise the key"},
		"expired": {login(ca, someone, now.Add(-time.Hour)),
			`the certificate "run-1" is valid from 20`, "have a new certificate signed"},
		"for another user":     {login(ca, "root", now), "user ops may not log in", "AuthorizedPrincipalsFile"},
		"by another authority": {login(otherCA, someone, now), "user ops may not log in", "TrustedUserCAKeys"},
		"without its key": {Auth{Certificates: []secret.Value{line}, Password: secret.New("s3cret")},
			"certificate 1: the private key that it is for", credentials},
		"for another key": {with(ca.signer, line), "is not given", credentials},
		"a host's":        {with(user, line, secret.New(authorizedLine(hostCert))), "certificate 2: it is not a user's", credentials},
		"a plain key":     {with(user, secret.New(lineOf(user))), "without a certificate", credentials},
		"garbage":         {with(user, secret.New("s3cret")), "certificate 1: ", credentials},
		"none at all":     {Auth{}, "neither a key nor", credentials},
	} {
		t.Run(name, func(t *testing.T) {
			leavesNothing(t)
			server := machine(t, sshtest.Trust(ca.signer.PublicKey()))
			c := among(server, rightAt)
			c.Auth = test.auth
			h, err := Dial(anyTime(t), c)
			var e *host.Error
			switch {
			case err == nil && test.says != "":
				t.Error("may log in")
			case errors.As(err, &e) && !strings.Contains(e.Remedy, test.remedy):
				t.Errorf("the remedy is to %s, not to %s", e.Remedy, test.remedy)
			case err != nil && (test.says == "" || host.KindOf(err) != host.KindAuth || !strings.Contains(err.Error(), test.says)):
				t.Errorf("kind %s: %v, want it to say %q", host.KindOf(err), err, test.says)
			case err != nil && strings.Contains(err.Error(), "s3cret"):
				t.Errorf("it tells a secret: %v", err)
			}
			if err == nil {
				_ = h.Close()
			}
		})
	}
}

// TestCertificatesAreOfferedFirst: a host that counts attempts sees the certificate before the plain keys.
func TestCertificatesAreOfferedFirst(t *testing.T) {
	ca := newUserCA(t)
	_, user := newKey(t)
	_, other := newKey(t)
	var offered []string
	server := machine(t, func(c *ssh.ServerConfig) {
		c.NoClientAuth = false
		c.PublicKeyCallback = func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			offered = append(offered, authorizedLine(key))
			return nil, errRefused
		}
	})
	line := certificateOf(t, ca.signer, user)
	c := among(server, rightAt)
	c.Auth = Auth{Certificates: []secret.Value{secret.New(line)}, Signers: []ssh.Signer{other, user}}
	if _, err := Dial(anyTime(t), c); host.KindOf(err) != host.KindAuth {
		t.Error(err)
	}
	if want := []string{line, lineOf(other), lineOf(user)}; !slices.Equal(offered, want) {
		t.Errorf("offered %q, want %q", offered, want)
	}
}

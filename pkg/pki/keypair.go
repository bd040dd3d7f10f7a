// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// KeyPair is a certificate and its private key. Cluster API keeps one in a Secret as tls.crt and tls.key.
type KeyPair struct {
	// Cert is one or more certificates in PEM; the first is the one that Key belongs to. For service account keys it is
	// the public key in PEM.
	Cert []byte
	// Key is the private key in PEM: PKCS #1 for RSA, SEC 1 for ECDSA. Keys that others made may be in PKCS #8.
	Key secret.Value
}

// IsZero reports whether there is neither a certificate nor a key.
func (p KeyPair) IsZero() bool { return len(p.Cert) == 0 && p.Key.IsZero() }

// Certificate returns the first certificate of p.
func (p KeyPair) Certificate() (*x509.Certificate, error) { return first(p.Cert) }

// CheckCA returns nil if p can sign for a cluster at the time now: its certificate is a CA's and may sign, is valid, and
// the key is its own and of a kind that kubeadm accepts (RSA of at least 2048 bits, or ECDSA). Use it on what a user
// supplies.
func (p KeyPair) CheckCA(now time.Time) error {
	cert, _, err := p.load()
	if err != nil {
		return err
	}
	name := cert.Subject.CommonName
	switch {
	case !cert.BasicConstraintsValid || !cert.IsCA:
		return fmt.Errorf("certificate %q is not a CA's: it lacks the basic constraint CA:TRUE", name)
	case cert.KeyUsage != 0 && cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return fmt.Errorf("CA certificate %q may not sign certificates: its key usage lacks keyCertSign", name)
	}
	return checkPeriod("CA certificate", cert, now)
}

// CheckLeaf returns nil if p's key is its certificate's own and roots (PEM) vouch for the certificate at the time now,
// for every usage given.
func (p KeyPair) CheckLeaf(roots []byte, now time.Time, usages ...Usage) error {
	cert, _, err := p.load()
	if err != nil {
		return err
	}
	authorities, err := certutil.ParseCertsPEM(roots)
	if err != nil {
		return fmt.Errorf("CA certificates are not readable PEM: %w", err)
	}
	chain, err := certutil.ParseCertsPEM(p.Cert)
	if err != nil {
		return fmt.Errorf("certificates are not readable PEM: %w", err)
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	for _, c := range authorities {
		options.Roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	// One at a time: Verify is content with any of the usages.
	for _, u := range usages {
		want, err := u.extended()
		if err != nil {
			return err
		}
		options.KeyUsages = []x509.ExtKeyUsage{want}
		if _, err := cert.Verify(options); err != nil {
			return fmt.Errorf("certificate %q does not hold for %s: %w", cert.Subject.CommonName, u, err)
		}
	}
	return nil
}

// load parses p and checks that its key belongs to its certificate.
func (p KeyPair) load() (*x509.Certificate, crypto.Signer, error) {
	cert, err := first(p.Cert)
	if err != nil {
		return nil, nil, err
	}
	key, err := parseKey(p.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("private key of certificate %q: %w", cert.Subject.CommonName, err)
	}
	if !samePublicKey(cert.PublicKey, key.Public()) {
		return nil, nil, fmt.Errorf("the private key does not belong to certificate %q", cert.Subject.CommonName)
	}
	return cert, key, nil
}

func first(cert []byte) (*x509.Certificate, error) {
	if len(bytes.TrimSpace(cert)) == 0 {
		return nil, errors.New("there is no certificate")
	}
	certs, err := certutil.ParseCertsPEM(cert)
	if err != nil {
		return nil, fmt.Errorf("certificate is not readable PEM: %w", err)
	}
	return certs[0], nil
}

// parseKey reads a private key of a kind that kubeadm takes. Parsers' errors are not passed on: they are about bytes
// that nobody should see.
func parseKey(v secret.Value) (crypto.Signer, error) {
	if v.IsZero() {
		return nil, errors.New("there is none")
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(v.Reveal())
	if err != nil {
		return nil, errors.New("it is not an unencrypted PEM key in PKCS #1, PKCS #8 or SEC 1")
	}
	switch key := parsed.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < 2048 {
			return nil, fmt.Errorf("RSA with %d bits is too weak; use 2048 or more", key.N.BitLen())
		}
		return key, nil
	case *ecdsa.PrivateKey:
		return key, nil
	case ed25519.PrivateKey:
		return nil, errors.New("Kubernetes' own tools do not accept Ed25519; use RSA or ECDSA")
	default:
		return nil, fmt.Errorf("keys of type %T are not supported; use RSA or ECDSA", parsed)
	}
}

func samePublicKey(a, b crypto.PublicKey) bool {
	own, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && own.Equal(b)
}

func checkPeriod(what string, cert *x509.Certificate, now time.Time) error {
	switch {
	case now.Before(cert.NotBefore):
		return fmt.Errorf("%s %q is valid only from %s; is this machine's clock right?", what, cert.Subject.CommonName, cert.NotBefore.Format(time.RFC3339))
	case now.After(cert.NotAfter):
		return fmt.Errorf("%s %q expired at %s", what, cert.Subject.CommonName, cert.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"time"

	"github.com/cloudflare/cfssl/csr"
)

// DefaultCAValidity is how long a CA is valid when nothing else is said: ten years, kubeadm's and Cluster API's default.
const DefaultCAValidity = 10 * 365 * 24 * time.Hour

// backdate is how long before now certificates begin, for hosts whose clocks lag.
const backdate = 5 * time.Minute

// Algorithm is the kind of a private key. The names are those of kubeadm's encryptionAlgorithm.
type Algorithm string

// The algorithms that kubeadm accepts and that are worth having.
const (
	RSA2048   Algorithm = "RSA-2048"
	RSA3072   Algorithm = "RSA-3072"
	RSA4096   Algorithm = "RSA-4096"
	ECDSAP256 Algorithm = "ECDSA-P256"
	ECDSAP384 Algorithm = "ECDSA-P384"
)

// request returns what cfssl calls a; "" is RSA-2048, the default of kubeadm and Cluster API.
func (a Algorithm) request() (*csr.KeyRequest, error) {
	switch a {
	case "", RSA2048:
		return &csr.KeyRequest{A: "rsa", S: 2048}, nil
	case RSA3072:
		return &csr.KeyRequest{A: "rsa", S: 3072}, nil
	case RSA4096:
		return &csr.KeyRequest{A: "rsa", S: 4096}, nil
	case ECDSAP256:
		return &csr.KeyRequest{A: "ecdsa", S: 256}, nil
	case ECDSAP384:
		return &csr.KeyRequest{A: "ecdsa", S: 384}, nil
	}
	return nil, fmt.Errorf("nothing is known of key algorithm %q; use %s, %s, %s, %s or %s", string(a), RSA2048, RSA3072, RSA4096, ECDSAP256, ECDSAP384)
}

// CARequest says what a CA is to be.
type CARequest struct {
	// CommonName is the subject's CN, and its one DNS name as well, as kubeadm has it.
	CommonName string
	// Validity from now on; 0 is DefaultCAValidity.
	Validity time.Duration
	// Key is the algorithm; "" is RSA-2048.
	Key Algorithm
}

// NewCA makes a self-signed CA.
func NewCA(r CARequest) (KeyPair, error) {
	if r.CommonName == "" {
		return KeyPair{}, errors.New("a CA needs a common name")
	}
	validity := r.Validity
	if validity == 0 {
		validity = DefaultCAValidity
	}
	p, err := issue(nil, nil, issuance{
		commonName: r.CommonName, hosts: []string{r.CommonName}, key: r.Key,
		// crlSign is missing on purpose: kubeadm's and Cluster API's CAs do not have it either.
		usages: []string{"digital signature", "key encipherment", "cert sign"},
		from:   time.Now(), validity: validity,
	})
	if err != nil {
		return KeyPair{}, fmt.Errorf("CA %q: %w", r.CommonName, err)
	}
	return p, nil
}

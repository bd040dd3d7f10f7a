// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// NewServiceAccountKeys makes the pair with which service account tokens are signed and verified. Cert is the public key
// (PKIX), which is how kubeadm's sa.pub and Cluster API's sa Secret have it. "" is RSA-2048.
func NewServiceAccountKeys(a Algorithm) (KeyPair, error) {
	request, err := a.request()
	if err != nil {
		return KeyPair{}, fmt.Errorf("service account keys: %w", err)
	}
	made, err := request.Generate()
	if err != nil {
		return KeyPair{}, fmt.Errorf("service account keys: %w", err)
	}
	key, ok := made.(crypto.Signer)
	if !ok {
		return KeyPair{}, fmt.Errorf("service account keys: a %T cannot sign", made)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("service account keys: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return KeyPair{}, fmt.Errorf("service account keys: %w", err)
	}
	return KeyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: public}),
		Key:  secret.New(private),
	}, nil
}

// CheckServiceAccountKeys returns nil if p holds a public key, or a certificate with one, and the private key to it.
func (p KeyPair) CheckServiceAccountKeys() error {
	key, err := parseKey(p.Key)
	if err != nil {
		return fmt.Errorf("service account private key: %w", err)
	}
	var publics []any
	if certs, err := certutil.ParseCertsPEM(p.Cert); err == nil {
		publics = append(publics, certs[0].PublicKey)
	} else if publics, err = keyutil.ParsePublicKeysPEM(p.Cert); err != nil {
		return errors.New("service account public key is not readable PEM")
	}
	// Others are keys that were used before: their tokens are still good.
	for _, public := range publics {
		if samePublicKey(public, key.Public()) {
			return nil
		}
	}
	return errors.New("service account public key does not belong to the private key")
}

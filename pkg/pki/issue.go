// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/cloudflare/cfssl/config"
	"github.com/cloudflare/cfssl/csr"
	"github.com/cloudflare/cfssl/signer"
	"github.com/cloudflare/cfssl/signer/local"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// issuance is what NewCA and Sign have in common.
type issuance struct {
	commonName    string
	organizations []string
	// hosts are DNS names and addresses.
	hosts    []string
	usages   []string
	key      Algorithm
	from     time.Time
	validity time.Duration
}

// issue makes a key and has its certificate signed by the CA, or by itself if ca is nil: then it is a CA.
func issue(ca *x509.Certificate, caKey crypto.Signer, i issuance) (KeyPair, error) {
	if i.validity < 0 {
		return KeyPair{}, fmt.Errorf("a validity of %s is in the past", i.validity)
	}
	request, err := i.key.request()
	if err != nil {
		return KeyPair{}, err
	}
	// Truncated, because that is all a certificate holds: who compares what was asked with what came finds no difference.
	end := i.from.Add(i.validity).UTC().Truncate(time.Second)
	if ca != nil && end.After(ca.NotAfter) {
		end = ca.NotAfter // beyond it nobody would accept the certificate
	}
	profile := &config.SigningProfile{
		Usage: i.usages, NotBefore: i.from.Add(-backdate), NotAfter: end,
		Expiry: i.validity, // cfssl refuses profiles without one, though NotAfter decides
	}
	names := make([]csr.Name, 0, len(i.organizations))
	for _, o := range i.organizations {
		names = append(names, csr.Name{O: o})
	}
	r := &csr.CertificateRequest{CN: i.commonName, Names: names, Hosts: i.hosts, KeyRequest: request}
	if ca == nil {
		r.CA = &csr.CAConfig{}
		profile.CAConstraint.IsCA = true
		// cfssl empties a CA's DNS names, which is also why initca is of no use here; extensions it keeps if told so.
		profile.CopyExtensions = true
	}

	generator := csr.Generator{Validator: func(*csr.CertificateRequest) error { return nil }}
	csrPEM, keyPEM, err := generator.ProcessRequest(r)
	if err != nil {
		return KeyPair{}, fmt.Errorf("making a %s key and its request: %w", request.A, err)
	}
	key := secret.New(keyPEM)
	if ca == nil {
		if caKey, err = parseKey(key); err != nil {
			return KeyPair{}, err
		}
	}
	s, err := local.NewSigner(caKey, ca, signer.DefaultSigAlgo(caKey), &config.Signing{Default: profile})
	if err != nil {
		return KeyPair{}, err
	}
	cert, err := s.Sign(signer.SignRequest{Request: string(csrPEM)})
	if err != nil {
		return KeyPair{}, fmt.Errorf("signing: %w", err)
	}
	if len(cert) == 0 {
		return KeyPair{}, errors.New("signing made no certificate")
	}
	return KeyPair{Cert: cert, Key: key}, nil
}

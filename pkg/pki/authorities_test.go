// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

func TestAuthorities(t *testing.T) {
	a, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(time.Now()); err != nil {
		t.Error(err)
	}
	for name, commonName := range map[string]string{"ca": "kubernetes", "etcd": "etcd-ca", "proxy": "front-proxy-ca"} {
		p, ok := a.Get(name)
		if c := certificate(t, p); !ok || c.Subject.CommonName != commonName {
			t.Errorf("%s is %q", name, c.Subject)
		}
	}
	sa, _ := a.Get("sa")
	block, rest := pem.Decode(sa.Cert)
	if block == nil || block.Type != "PUBLIC KEY" || len(rest) != 0 {
		t.Fatalf("the service account's tls.crt is not one public key: %s", sa.Cert)
	}
	if _, err := x509.ParsePKIXPublicKey(block.Bytes); err != nil {
		t.Error(err)
	}
	if _, ok := a.Get("other"); ok || a.Set("other", sa) {
		t.Error("there is a pair called other")
	}
	wantError(t, a.Check(time.Now().AddDate(20, 0, 0)), "ca: ")
}

func TestCompleteKeepsWhatIsThere(t *testing.T) {
	own := newCA(t, pki.CARequest{CommonName: "corp", Key: pki.ECDSAP256})
	var a pki.Authorities
	a.Set(pki.EtcdName, own)
	made, err := a.Complete(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"ca", "proxy", "sa"}; !slices.Equal(made, want) {
		t.Errorf("made %q, want %q", made, want)
	}
	if string(a.Etcd.Cert) != string(own.Cert) {
		t.Error("the user's CA was replaced")
	}
	if made, err := a.Complete(pki.CARequest{}); err != nil || len(made) > 0 {
		t.Errorf("completing twice made %q, %v", made, err)
	}
}

func TestCheckServiceAccountKeys(t *testing.T) {
	pair := func(a pki.Algorithm) pki.KeyPair {
		p, err := pki.NewServiceAccountKeys(a)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	one, two := pair(""), pair(pki.ECDSAP256)
	ca := newCA(t, pki.CARequest{CommonName: "sa"})
	tests := map[string]struct {
		pair pki.KeyPair
		want string
	}{
		"RSA":                      {one, ""},
		"ECDSA":                    {two, ""},
		"a certificate":            {ca, ""},
		"with an older public key": {pki.KeyPair{Cert: append(slices.Clone(two.Cert), one.Cert...), Key: one.Key}, ""},
		"a mismatch":               {pki.KeyPair{Cert: one.Cert, Key: two.Key}, "does not belong"},
		"no private key":           {pki.KeyPair{Cert: one.Cert}, "there is none"},
		"no public key":            {pki.KeyPair{Key: one.Key}, "not readable PEM"},
		"a public key as private":  {pki.KeyPair{Cert: one.Cert, Key: secret.New(one.Cert)}, "not an unencrypted PEM key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { wantError(t, test.pair.CheckServiceAccountKeys(), test.want) })
	}
}

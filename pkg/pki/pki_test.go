// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

func newCA(t *testing.T, r pki.CARequest) pki.KeyPair {
	t.Helper()
	p, err := pki.NewCA(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func certificate(t *testing.T, p pki.KeyPair) *x509.Certificate {
	t.Helper()
	c, err := p.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error is %v; it should say %q", err, want)
	}
}

// TestCAIsLikeKubeadms compares with what kubeadm's NewSelfSignedCACert makes.
func TestCAIsLikeKubeadms(t *testing.T) {
	for _, algorithm := range []pki.Algorithm{"", pki.RSA2048, pki.RSA3072, pki.ECDSAP256, pki.ECDSAP384} {
		t.Run(string(algorithm), func(t *testing.T) {
			before := time.Now()
			ca := newCA(t, pki.CARequest{CommonName: "kubernetes", Key: algorithm, Validity: 48 * time.Hour})
			c := certificate(t, ca)
			if !c.IsCA || !c.BasicConstraintsValid || c.MaxPathLen != -1 {
				t.Errorf("IsCA %t, BasicConstraintsValid %t, MaxPathLen %d", c.IsCA, c.BasicConstraintsValid, c.MaxPathLen)
			}
			if want := x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign; c.KeyUsage != want {
				t.Errorf("KeyUsage %b, want %b", c.KeyUsage, want)
			}
			if c.Subject.String() != "CN=kubernetes" || !slices.Equal(c.DNSNames, []string{"kubernetes"}) {
				t.Errorf("subject %q, DNS names %q", c.Subject, c.DNSNames)
			}
			if d := before.Sub(c.NotBefore); d < 4*time.Minute || d > 6*time.Minute {
				t.Errorf("the certificate begins %s before it was made, want 5m", d)
			}
			if d := c.NotAfter.Sub(before); d < 47*time.Hour || d > 48*time.Hour+time.Minute {
				t.Errorf("the certificate is valid for %s", d)
			}
			switch key := c.PublicKey.(type) {
			case *rsa.PublicKey:
				want := map[pki.Algorithm]int{"": 2048, pki.RSA2048: 2048, pki.RSA3072: 3072}[algorithm]
				if key.N.BitLen() != want {
					t.Errorf("RSA with %d bits, want %d", key.N.BitLen(), want)
				}
			case *ecdsa.PublicKey:
				want := map[pki.Algorithm]string{pki.ECDSAP256: "P-256", pki.ECDSAP384: "P-384"}[algorithm]
				if key.Curve.Params().Name != want {
					t.Errorf("ECDSA with %s, want %s", key.Curve.Params().Name, want)
				}
			}
			if err := ca.CheckCA(time.Now()); err != nil {
				t.Errorf("CheckCA: %v", err)
			}
		})
	}
	t.Run("refusals", func(t *testing.T) {
		_, err := pki.NewCA(pki.CARequest{})
		wantError(t, err, "common name")
		_, err = pki.NewCA(pki.CARequest{CommonName: "x", Key: "DSA"})
		wantError(t, err, `algorithm "DSA"`)
		_, err = pki.NewCA(pki.CARequest{CommonName: "x", Validity: -time.Hour})
		wantError(t, err, "past")
	})
}

func TestSign(t *testing.T) {
	ca := newCA(t, pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	server := pki.LeafRequest{
		CommonName: "kube-apiserver", DNSNames: []string{"kubernetes.default.svc", "node-1", "*.apps.example.com"},
		IPs: []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::1")}, Usages: []pki.Usage{pki.Server},
	}
	client := pki.LeafRequest{CommonName: "system:node:node-1", Organizations: []string{"others", "system:nodes"}, Usages: []pki.Usage{pki.Client}}
	peer := pki.LeafRequest{CommonName: "node-1", DNSNames: []string{"node-1"}, Usages: []pki.Usage{pki.Server, pki.Client}, Key: pki.RSA2048}
	tests := map[string]struct {
		request pki.LeafRequest
		good    []pki.Usage
		bad     []pki.Usage
	}{
		"server": {server, []pki.Usage{pki.Server}, []pki.Usage{pki.Client}},
		"client": {client, []pki.Usage{pki.Client}, []pki.Usage{pki.Server}},
		"peer":   {peer, []pki.Usage{pki.Client, pki.Server}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			leaf, err := ca.Sign(test.request)
			if err != nil {
				t.Fatal(err)
			}
			c := certificate(t, leaf)
			if c.IsCA || c.Subject.CommonName != test.request.CommonName ||
				!slices.Equal(c.Subject.Organization, test.request.Organizations) {
				t.Errorf("IsCA %t, subject %q", c.IsCA, c.Subject)
			}
			if c.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment {
				t.Errorf("KeyUsage %b", c.KeyUsage)
			}
			if !slices.Equal(c.DNSNames, test.request.DNSNames) ||
				len(c.IPAddresses) != len(test.request.IPs) || len(c.EmailAddresses)+len(c.URIs) != 0 {
				t.Errorf("names %q %q %q %q", c.DNSNames, c.IPAddresses, c.EmailAddresses, c.URIs)
			}
			for _, name := range append(slices.Clone(test.request.DNSNames), addresses(test.request.IPs)...) {
				if err := c.VerifyHostname(strings.Replace(name, "*", "www", 1)); err != nil {
					t.Error(err)
				}
			}
			if d := c.NotAfter.Sub(time.Now()); d < 364*24*time.Hour || d > 365*24*time.Hour {
				t.Errorf("valid for %s, want a year", d)
			}
			if err := leaf.CheckLeaf(ca.Cert, time.Now(), test.good...); err != nil {
				t.Error(err)
			}
			for _, usage := range test.bad {
				wantError(t, leaf.CheckLeaf(ca.Cert, time.Now(), usage), "incompatible key usage")
			}
			other := newCA(t, pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
			wantError(t, leaf.CheckLeaf(other.Cert, time.Now(), test.good...), "does not hold")
			wantError(t, leaf.CheckLeaf(ca.Cert, time.Now().AddDate(2, 0, 0), test.good...), "expired")
			wantError(t, leaf.CheckCA(time.Now()), "not a CA's")
		})
	}
}

func addresses(ips []netip.Addr) []string {
	out := make([]string, 0, len(ips))
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out
}

func TestSignKeepsToItsCA(t *testing.T) {
	ca := newCA(t, pki.CARequest{CommonName: "short", Key: pki.ECDSAP384, Validity: time.Hour})
	leaf, err := ca.Sign(pki.LeafRequest{CommonName: "admin", Usages: []pki.Usage{pki.Client}})
	if err != nil {
		t.Fatal(err)
	}
	if end, its := certificate(t, leaf).NotAfter, certificate(t, ca).NotAfter; !end.Equal(its) {
		t.Errorf("the certificate ends at %s, its CA at %s", end, its)
	}
	if key, ok := certificate(t, leaf).PublicKey.(*ecdsa.PublicKey); !ok || key.Curve.Params().Name != "P-384" {
		t.Error("the key is not of its CA's kind")
	}
}

func TestSignRefuses(t *testing.T) {
	ca := newCA(t, pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	good := pki.LeafRequest{CommonName: "x", DNSNames: []string{"x"}, Usages: []pki.Usage{pki.Server}}
	tests := map[string]struct {
		change func(*pki.LeafRequest)
		want   string
	}{
		"nothing":              {func(*pki.LeafRequest) {}, ""},
		"no name":              {func(r *pki.LeafRequest) { r.CommonName = "" }, "common name"},
		"no usage":             {func(r *pki.LeafRequest) { r.Usages = nil }, "usage"},
		"an unknown usage":     {func(r *pki.LeafRequest) { r.Usages = []pki.Usage{"code signing"} }, `"code signing"`},
		"a nameless server":    {func(r *pki.LeafRequest) { r.DNSNames = nil }, "DNS name or an address"},
		"an address as a name": {func(r *pki.LeafRequest) { r.DNSNames = []string{"10.0.0.1"} }, "is an address"},
		"a mail address":       {func(r *pki.LeafRequest) { r.DNSNames = []string{"a@example.com"} }, `"a@example.com"`},
		"a path":               {func(r *pki.LeafRequest) { r.DNSNames = []string{"/etc"} }, `"/etc"`},
		"no address":           {func(r *pki.LeafRequest) { r.IPs = []netip.Addr{{}} }, "address"},
		"a zone":               {func(r *pki.LeafRequest) { r.IPs = []netip.Addr{netip.MustParseAddr("fe80::1%eth0")} }, "fe80::1%eth0"},
		"an empty group":       {func(r *pki.LeafRequest) { r.Organizations = []string{""} }, "organization"},
		"an unknown algorithm": {func(r *pki.LeafRequest) { r.Key = "DSA" }, `"DSA"`},
		"a negative validity":  {func(r *pki.LeafRequest) { r.Validity = -time.Hour }, "past"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := good
			test.change(&r)
			_, err := ca.Sign(r)
			wantError(t, err, test.want)
		})
	}
}

// foreign makes a self-signed certificate with the standard library, as a user would with some other tool.
func foreign(t *testing.T, change func(*x509.Certificate)) pki.KeyPair {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "corp"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pki.KeyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  secret.New(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
}

func TestCheckCA(t *testing.T) {
	good := newCA(t, pki.CARequest{CommonName: "corp", Key: pki.ECDSAP256})
	other := newCA(t, pki.CARequest{CommonName: "corp", Key: pki.ECDSAP256})
	bundle := slices.Concat(good.Cert, other.Cert)
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weakKey := secret.New(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(weak)}))
	now := time.Now()
	tests := map[string]struct {
		pair pki.KeyPair
		at   time.Time
		want string
	}{
		"good":                    {good, now, ""},
		"good with its successor": {pki.KeyPair{Cert: bundle, Key: good.Key}, now, ""},
		"another's key":           {pki.KeyPair{Cert: good.Cert, Key: other.Key}, now, `does not belong to certificate "corp"`},
		"the second's key":        {pki.KeyPair{Cert: bundle, Key: other.Key}, now, "does not belong"},
		"no key":                  {pki.KeyPair{Cert: good.Cert}, now, "there is none"},
		"no certificate":          {pki.KeyPair{Key: good.Key}, now, "there is no certificate"},
		"no PEM":                  {pki.KeyPair{Cert: []byte("MIIB"), Key: good.Key}, now, "not readable PEM"},
		"a key that is no key":    {pki.KeyPair{Cert: good.Cert, Key: secret.New("hunter2")}, now, "not an unencrypted PEM key"},
		"a weak key":              {pki.KeyPair{Cert: good.Cert, Key: weakKey}, now, "1024 bits"},
		"expired":                 {good, now.AddDate(11, 0, 0), "expired at"},
		"not yet valid":           {good, now.Add(-time.Hour), "valid only from"},
		"Ed25519":                 {foreign(t, func(*x509.Certificate) {}), now, "Ed25519"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.pair.CheckCA(test.at)
			wantError(t, err, test.want)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Error("the error shows the key")
			}
		})
	}
	t.Run("signing with a mismatch", func(t *testing.T) {
		_, err := pki.KeyPair{Cert: good.Cert, Key: other.Key}.Sign(pki.LeafRequest{CommonName: "x", Usages: []pki.Usage{pki.Client}})
		wantError(t, err, "does not belong")
	})
}

func TestFingerprintIsKubeadms(t *testing.T) {
	ca := newCA(t, pki.CARequest{CommonName: "kubernetes"})
	got, err := pki.Fingerprint(ca.Cert)
	if err != nil {
		t.Fatal(err)
	}
	// The algorithm in kubeadm's documentation: openssl x509 -pubkey | openssl rsa -pubin -outform der | openssl dgst -sha256
	der, err := x509.MarshalPKIXPublicKey(certificate(t, ca).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	if want := "sha256:" + hex.EncodeToString(sum[:]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	_, err = pki.Fingerprint(nil)
	wantError(t, err, "no certificate")
}

func TestKeysAreNeverPrinted(t *testing.T) {
	var logged bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&logged)
	authorities, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := authorities.Cluster.Sign(pki.LeafRequest{CommonName: "admin", Usages: []pki.Usage{pki.Client}})
	if err != nil {
		t.Fatal(err)
	}
	if logged.Len() > 0 {
		t.Errorf("making keys logged: %s", logged.String())
	}
	for _, p := range []pki.KeyPair{authorities.Cluster, authorities.ServiceAccount, admin} {
		line := strings.Split(string(p.Key.Reveal()), "\n")[1]
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			for _, text := range []string{fmt.Sprintf(verb, p), fmt.Sprintf(verb, &authorities)} {
				if strings.Contains(text, line) || strings.Contains(text, fmt.Sprintf("%x", line)) {
					t.Errorf("%s shows a private key", verb)
				}
			}
		}
	}
}

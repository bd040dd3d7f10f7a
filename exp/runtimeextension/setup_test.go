// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimeextension

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = a.issue(t, dir, name, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue makes a certificate and its key, as name.crt and name.key.
func (a *authority) issue(t *testing.T, dir, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(1), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// Nobody but who has a certificate of the authority that is named asks a hook anything.
func TestClientCertificate(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	serving, clients, others := newAuthority(t, dir, "ca"), newAuthority(t, elsewhere, "clients"), newAuthority(t, elsewhere, "others")
	serving.issue(t, dir, "tls", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	clients.issue(t, elsewhere, "core", &x509.Certificate{ExtKeyUsage: usage})
	others.issue(t, elsewhere, "other", &x509.Certificate{ExtKeyUsage: usage})

	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	hooks, err := newServer(&Extension{}, Options{
		Host: "127.0.0.1", Port: port, CertDir: dir, ClientCAFile: filepath.Join(elsewhere, "clients.crt"),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hooks.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if !cache.WaitForCacheSync(ctx.Done(), func() bool { return hooks.StartedChecker()(nil) == nil || len(ended) > 0 }) {
		t.Fatal("the server does not start")
	}

	roots := x509.NewCertPool()
	roots.AddCert(serving.cert)
	ask := func(name string) error {
		config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
		if name != "" {
			pair, err := tls.LoadX509KeyPair(filepath.Join(elsewhere, name+".crt"), filepath.Join(elsewhere, name+".key"))
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		response, err := client.Post("https://127.0.0.1:"+strconv.Itoa(port)+"/", "application/json", strings.NewReader("{}"))
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	if err := ask("core"); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	for _, name := range []string{"", "other"} {
		if err := ask(name); err == nil {
			t.Errorf("with the certificate %q, a hook can be asked", name)
		}
	}
}

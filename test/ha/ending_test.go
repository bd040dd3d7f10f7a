// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// renewsByItself has certificates that end soon, and wants the next look at the hosts to make others, with nobody asking for it.
func (c *cluster) renewsByItself() {
	c.t.Helper()
	soon := time.Now().Add(20 * 24 * time.Hour).Truncate(time.Second)
	aged := c.endAt(soon)
	if len(aged) == 0 {
		c.t.Fatal("no certificate was made to end soon")
	}
	if out, err := c.Run(c.t.Context(), c.certsCheckArgs()...); err == nil {
		c.t.Errorf("nobody is warned of certificates that end %s:\n%s", soon, out)
	}
	c.create()
	now := c.certificates()
	for _, name := range aged {
		if !now[name].After(soon) {
			c.t.Errorf("%s ends %s still", name, now[name])
		}
	}
	c.t.Logf("%d certificates that ended soon were renewed", len(aged))
}

// endAt makes of the certificates that kubexm or kubeadm looks after others that are the same but for their end, and returns
// which, as certificates names them. Those within a kubeconfig stay: kubeadm renews them with the others.
func (c *cluster) endAt(end time.Time) []string {
	c.t.Helper()
	var authorities []tls.Certificate
	for _, name := range []string{"ca", "etcd", "proxy"} {
		file := filepath.Join(c.Dir, ".kubexm", c.Name, "secrets", name)
		pair, err := tls.LoadX509KeyPair(file+".crt", file+".key")
		if err != nil {
			c.t.Fatal(err)
		}
		authorities = append(authorities, pair)
	}
	var aged []string
	for name := range c.certificates() {
		on, path, _ := strings.Cut(name, " ")
		for _, h := range c.Hosts {
			if h.Name != on || filepath.Ext(path) == ".conf" {
				continue
			}
			text, err := h.Exec(c.t.Context(), "cat", path)
			if err != nil {
				c.t.Fatal(err)
			}
			other := endingAt(c.t, text, authorities, end)
			if other == nil {
				continue
			}
			into := h.Command(c.t.Context(), "sh", "-c", `cat >"$1"`, "sh", path)
			into.Stdin = strings.NewReader(string(other))
			if out, err := into.CombinedOutput(); err != nil {
				c.t.Fatalf("%v: %s", err, out)
			}
			aged = append(aged, name)
		}
	}
	return aged
}

// endingAt is the certificate with another end, nil where none of the authorities has signed it, or a kubelet renews it, which
// keeps its key in the same file.
func endingAt(t *testing.T, text string, authorities []tls.Certificate, end time.Time) []byte {
	t.Helper()
	block, rest := pem.Decode([]byte(text))
	if block == nil || strings.Contains(string(rest), "PRIVATE KEY") {
		return nil
	}
	is, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range authorities {
		if is.CheckSignatureFrom(by.Leaf) != nil {
			continue
		}
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: is.Subject, NotBefore: is.NotBefore, NotAfter: end,
			KeyUsage: is.KeyUsage, ExtKeyUsage: is.ExtKeyUsage, BasicConstraintsValid: true,
			DNSNames: is.DNSNames, IPAddresses: is.IPAddresses,
		}, by.Leaf, is.PublicKey, by.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der})
	}
	return nil
}

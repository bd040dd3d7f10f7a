// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/atomicfile"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Files in the plane's directory, relative to it: the children run there.
const (
	caCert     = "pki/ca.crt"
	caKey      = "pki/ca.key"
	saPublic   = "pki/sa.pub"
	saPrivate  = "pki/sa.key"
	serverCert = "pki/apiserver.crt"
	serverKey  = "pki/apiserver.key"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// keys are what a plane's trust rests on. The authority and the service account keys are made once, so that kubeconfigs
// and tokens stay valid; the certificates are new with each start, so that none of them expires.
type keys struct {
	authority, server, webhook, admin pki.KeyPair
}

func loadKeys(dir string) (keys, error) {
	var k keys
	if err := os.MkdirAll(filepath.Join(dir, "pki"), 0o700); err != nil {
		return k, err
	}
	var err error
	k.authority, err = loadOrMake(dir, caCert, caKey,
		func(p pki.KeyPair) error { return p.CheckCA(time.Now()) },
		func() (pki.KeyPair, error) {
			return pki.NewCA(pki.CARequest{CommonName: "kubexm-embedded-plane", Key: pki.ECDSAP256})
		})
	if err != nil {
		return k, fmt.Errorf("certificate authority: %w", err)
	}
	if _, err = loadOrMake(dir, saPublic, saPrivate, pki.KeyPair.CheckServiceAccountKeys, func() (pki.KeyPair, error) {
		return pki.NewServiceAccountKeys(pki.ECDSAP256)
	}); err != nil {
		return k, fmt.Errorf("service account keys: %w", err)
	}

	serving := pki.LeafRequest{DNSNames: []string{"localhost"}, IPs: []netip.Addr{loopback}, Usages: []pki.Usage{pki.Server}}
	serving.CommonName = "kube-apiserver"
	if k.server, err = k.authority.Sign(serving); err != nil {
		return k, fmt.Errorf("certificate of the API server: %w", err)
	}
	serving.CommonName = "kubexm-webhooks"
	if k.webhook, err = k.authority.Sign(serving); err != nil {
		return k, fmt.Errorf("certificate of the webhook server: %w", err)
	}
	if k.admin, err = k.authority.Sign(pki.LeafRequest{
		CommonName: "kubexm", Organizations: []string{"system:masters"}, Usages: []pki.Usage{pki.Client},
	}); err != nil {
		return k, fmt.Errorf("certificate of the plane's client: %w", err)
	}
	return k, writePair(dir, serverCert, serverKey, k.server)
}

// loadOrMake returns the pair that lies in dir, or makes it if one of its halves is missing.
func loadOrMake(dir, certFile, keyFile string, check func(pki.KeyPair) error, produce func() (pki.KeyPair, error)) (pki.KeyPair, error) {
	cert, certErr := os.ReadFile(filepath.Join(dir, certFile))
	key, keyErr := os.ReadFile(filepath.Join(dir, keyFile))
	switch err := errors.Join(certErr, keyErr); {
	case err == nil:
		pair := pki.KeyPair{Cert: cert, Key: secret.New(key)}
		if err := check(pair); err != nil {
			return pki.KeyPair{}, fmt.Errorf("%w; remove %s and a new pair is made, which those who hold a kubeconfig or a token of the old one must learn of",
				err, filepath.Join(dir, keyFile))
		}
		return pair, nil
	case !errors.Is(certErr, fs.ErrNotExist) && !errors.Is(keyErr, fs.ErrNotExist):
		return pki.KeyPair{}, err
	}
	pair, err := produce()
	if err != nil {
		return pki.KeyPair{}, err
	}
	return pair, writePair(dir, certFile, keyFile, pair)
}

func writePair(dir, certFile, keyFile string, pair pki.KeyPair) error {
	return errors.Join(
		atomicfile.WriteBytes(filepath.Join(dir, keyFile), 0o600, pair.Key.Reveal()),
		atomicfile.WriteBytes(filepath.Join(dir, certFile), 0o600, pair.Cert),
	)
}

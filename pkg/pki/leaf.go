// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultLeafValidity is how long a certificate is valid when nothing else is said: one year, kubeadm's default.
const DefaultLeafValidity = 365 * 24 * time.Hour

// Usage is what a certificate may be used for.
type Usage string

// The usages of a cluster's certificates. An etcd member's peer certificate has both.
const (
	Client Usage = "client auth"
	Server Usage = "server auth"
)

func (u Usage) extended() (x509.ExtKeyUsage, error) {
	switch u {
	case Client:
		return x509.ExtKeyUsageClientAuth, nil
	case Server:
		return x509.ExtKeyUsageServerAuth, nil
	}
	return 0, fmt.Errorf("nothing is known of usage %q; use %q or %q", string(u), Client, Server)
}

// LeafRequest says what a certificate is to be.
type LeafRequest struct {
	// CommonName is the subject's CN: to Kubernetes, the user's name.
	CommonName string
	// Organizations are the subject's O: to Kubernetes, the user's groups.
	Organizations []string
	// DNSNames and IPs are the subject's alternative names. Servers need at least one.
	DNSNames []string
	IPs      []netip.Addr
	// Usages are at least one of Client and Server.
	Usages []Usage
	// Validity from now on; 0 is DefaultLeafValidity. No certificate outlives its CA.
	Validity time.Duration
	// Key is the algorithm; "" is that of the CA's own key.
	Key Algorithm
}

// Sign makes a key and a certificate that p, a CA, vouches for. It refuses what CheckCA refuses.
func (p KeyPair) Sign(r LeafRequest) (KeyPair, error) {
	now := time.Now()
	hosts, usages, err := r.validate()
	if err != nil {
		return KeyPair{}, fmt.Errorf("certificate %q: %w", r.CommonName, err)
	}
	if err := p.CheckCA(now); err != nil {
		return KeyPair{}, fmt.Errorf("certificate %q cannot be signed: %w", r.CommonName, err)
	}
	ca, key, err := p.load()
	if err != nil {
		return KeyPair{}, err
	}
	validity, algorithm := r.Validity, r.Key
	if validity == 0 {
		validity = DefaultLeafValidity
	}
	if algorithm == "" {
		algorithm = algorithmOf(key)
	}
	leaf, err := issue(ca, key, issuance{
		commonName: r.CommonName, organizations: r.Organizations, hosts: hosts,
		usages: usages, key: algorithm, from: now, validity: validity,
	})
	if err != nil {
		return KeyPair{}, fmt.Errorf("certificate %q: %w", r.CommonName, err)
	}
	return leaf, nil
}

// validate returns r's alternative names and usages as cfssl takes them.
func (r LeafRequest) validate() (hosts, usages []string, err error) {
	if r.CommonName == "" {
		return nil, nil, errors.New("it needs a common name")
	}
	if len(r.Usages) == 0 {
		return nil, nil, fmt.Errorf("it needs a usage: %q, %q or both", Client, Server)
	}
	for _, o := range r.Organizations {
		if o == "" {
			return nil, nil, errors.New("an organization is empty")
		}
	}
	for _, name := range r.DNSNames {
		// cfssl sorts names into kinds by their looks, so a name must look like one.
		if net.ParseIP(name) != nil {
			return nil, nil, fmt.Errorf("DNS name %q is an address; it belongs among the IPs", name)
		}
		problems := validation.IsDNS1123Subdomain(name)
		if strings.HasPrefix(name, "*.") {
			problems = validation.IsWildcardDNS1123Subdomain(name)
		}
		if len(problems) > 0 {
			return nil, nil, fmt.Errorf("DNS name %q: %s", name, strings.Join(problems, "; "))
		}
		hosts = append(hosts, name)
	}
	for _, ip := range r.IPs {
		if !ip.IsValid() || ip.Zone() != "" {
			return nil, nil, fmt.Errorf("address %q cannot be in a certificate", ip)
		}
		hosts = append(hosts, ip.Unmap().String())
	}
	usages = []string{"digital signature", "key encipherment"}
	for _, u := range r.Usages {
		if _, err := u.extended(); err != nil {
			return nil, nil, err
		}
		if u == Server && len(hosts) == 0 {
			return nil, nil, errors.New("a server's certificate needs a DNS name or an address: clients ignore the common name")
		}
		usages = append(usages, string(u))
	}
	return hosts, usages, nil
}

// algorithmOf returns the Algorithm of a CA's key; of kinds that have no name here, the closest.
func algorithmOf(key crypto.Signer) Algorithm {
	switch k := key.Public().(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return ECDSAP256
		}
		return ECDSAP384
	case *rsa.PublicKey:
		switch bits := k.N.BitLen(); {
		case bits >= 4096:
			return RSA4096
		case bits >= 3072:
			return RSA3072
		}
	}
	return RSA2048
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Certificate is a private key and a certificate for it that one of the cluster's authorities has signed, in two files.
// The key is made on the controller when it is needed, goes to the host, and is kept nowhere else. Another is made when
// what is there does not belong together, is signed by another authority, is for other names, or ends soon.
type Certificate struct {
	// Path and KeyPath are the files, in PEM. The certificate is 0644 and the key 0600, and both are the owner's.
	Path    string `json:"path"`
	KeyPath string `json:"keyPath"`
	Owner   string `json:"owner,omitempty"`
	Group   string `json:"group,omitempty"`
	// Authority is the Secret (SecretRef.Name) of the certificate authority, with tls.crt and tls.key.
	Authority string `json:"authority"`
	// Trusted is where the host has that authority's certificate. A host that has another one there, or a certificate of another one
	// and none there, is refused: see func Authority.
	Trusted string `json:"trusted"`
	// CommonName and Organizations are the subject.
	CommonName    string   `json:"commonName"`
	Organizations []string `json:"organizations,omitempty"`
	// DNSNames and Addresses are the alternative names.
	DNSNames  []string     `json:"dnsNames,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Usages    []pki.Usage  `json:"usages"`
	// Validity of a certificate that is made; 0 is pki.DefaultLeafValidity. It is not compared.
	Validity Duration `json:"validity,omitempty"`
	// RenewBefore is how long before its end another is made; with 0, when it has ended. More than half of Validity counts as
	// half: a certificate that was just made is not renewed. Nor is one that ends with its authority: no other would last longer.
	RenewBefore Duration `json:"renewBefore,omitempty"`
}

// Meta names the kind.
func (c Certificate) Meta() Meta { return Meta{Name: "certificate"} }

// Observe asks for the certificate, and for the key without its content.
func (c Certificate) Observe() host.Query {
	return host.Query{Paths: []host.PathQuery{{Path: c.Path, Content: true}, {Path: c.KeyPath}, {Path: c.Trusted, Content: true}}}
}

// Precheck differs, with the reason, when another certificate is needed.
func (c Certificate) Precheck(v View) (Diff, error) {
	authority, err := v.Values.Secret(SecretRef{Name: c.Authority, Key: certKey})
	if err != nil {
		return nil, err
	}
	trusted, err := sameAuthority(v, c.Authority, c.Trusted)
	if err != nil {
		return nil, err
	}
	subject := host.File{Path: c.Path}.Key()
	cert, key := v.Facts.Paths[c.Path], v.Facts.Paths[c.KeyPath]
	why, err := c.outdated(cert, key, authority, v.Facts.Taken)
	if err != nil {
		return nil, err
	}
	if !trusted && signedByAnother(cert, authority) {
		return nil, otherAuthority(v, fmt.Sprintf("%s is signed by another authority than the cluster's key pair %s, and %s is missing or unreadable",
			c.Path, c.Authority, c.Trusted))
	}
	if why != "" {
		return Diff{{subject, why, "certificate of " + c.CommonName}}, nil
	}
	return append(accessDiff(subject, cert, certMode, c.Owner, c.Group),
		accessDiff(host.File{Path: c.KeyPath}.Key(), key, keyMode, c.Owner, c.Group)...), nil
}

const (
	certKey, privateKey = "tls.crt", "tls.key"
	certMode, keyMode   = Mode(0o644), Mode(0o600)
)

// signedByAnother reports whether a file is a certificate that the authority has not signed.
func signedByAnother(file host.Path, authority []byte) bool {
	is, err := pki.KeyPair{Cert: file.Content}.Certificate()
	if err != nil {
		return false
	}
	ca, err := pki.KeyPair{Cert: authority}.Certificate()
	return err == nil && is.CheckSignatureFrom(ca) != nil
}

// outdated is why the certificate will not do, "" if it will. The error is about the authority.
func (c Certificate) outdated(cert, key host.Path, authority []byte, now time.Time) (string, error) {
	switch {
	case !cert.Exists:
		return "absent", nil
	case !key.Exists:
		return "without its key", nil
	case !cert.Mode.IsRegular() || !key.Mode.IsRegular():
		return "not a file", nil
	case key.Modified.After(cert.Modified):
		// The key is written first. Anyone who was cut in between has left a certificate for another key.
		return "older than its key", nil
	}
	is, err := pki.KeyPair{Cert: cert.Content}.Certificate()
	if err != nil {
		return "not readable", nil //nolint:nilerr // that is the difference
	}
	ca, err := pki.KeyPair{Cert: authority}.Certificate()
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", SecretRef{Name: c.Authority, Key: certKey}, err)
	}
	switch {
	case is.CheckSignatureFrom(ca) != nil:
		return "signed by another authority", nil
	case is.Subject.CommonName != c.CommonName || !sameSet(is.Subject.Organization, c.Organizations):
		return "for " + is.Subject.String(), nil
	case !sameSet(is.DNSNames, c.DNSNames) || !sameSet(addressesOf(is), textOf(c.Addresses)):
		return "for other names and addresses", nil
	case !sameSet(usagesOf(is), c.Usages):
		return "for other usages", nil
	case now.After(is.NotAfter):
		return "ended " + is.NotAfter.UTC().Format(time.DateOnly), nil
	case now.Add(c.renewBefore()).After(is.NotAfter) && is.NotAfter.Before(ca.NotAfter):
		return "ends " + is.NotAfter.UTC().Format(time.DateOnly), nil
	}
	return "", nil
}

func (c Certificate) renewBefore() time.Duration {
	return min(time.Duration(c.RenewBefore), cmp.Or(time.Duration(c.Validity), pki.DefaultLeafValidity)/2)
}

func sameSet[T ~string](a, b []T) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

func textOf(addresses []netip.Addr) []string {
	var texts []string
	for _, a := range addresses {
		texts = append(texts, a.Unmap().String())
	}
	return texts
}

func addressesOf(cert *x509.Certificate) []string {
	var texts []string
	for _, ip := range cert.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); ok {
			texts = append(texts, a.Unmap().String())
		}
	}
	return texts
}

func usagesOf(cert *x509.Certificate) []pki.Usage {
	var usages []pki.Usage
	for _, u := range cert.ExtKeyUsage {
		switch u {
		case x509.ExtKeyUsageClientAuth:
			usages = append(usages, pki.Client)
		case x509.ExtKeyUsageServerAuth:
			usages = append(usages, pki.Server)
		default:
		}
	}
	return usages
}

// Effect makes a key and has it signed.
func (c Certificate) Effect(v View) (Effect, error) {
	var ca pki.KeyPair
	cert, err := v.Values.Secret(SecretRef{Name: c.Authority, Key: certKey})
	if err != nil {
		return Effect{}, err
	}
	key, err := v.Values.Secret(SecretRef{Name: c.Authority, Key: privateKey})
	if err != nil {
		return Effect{}, err
	}
	ca.Cert, ca.Key = cert, secret.New(key)
	made, err := ca.Sign(pki.LeafRequest{
		CommonName: c.CommonName, Organizations: c.Organizations, DNSNames: c.DNSNames, IPs: c.Addresses,
		Usages: c.Usages, Validity: time.Duration(c.Validity),
	})
	if err != nil {
		return Effect{}, fmt.Errorf("certificate %s: %w", c.Path, err)
	}
	return changes(
		host.File{Path: c.KeyPath, Mode: fs.FileMode(keyMode), Owner: c.Owner, Group: c.Group, Content: made.Key},
		host.File{Path: c.Path, Mode: fs.FileMode(certMode), Owner: c.Owner, Group: c.Group, Content: secret.New(made.Cert)},
	), nil
}

// Run makes the certificate.
func (c Certificate) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, c) }

// Rollback restores what was there.
func (c Certificate) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Certificates are all that s, with all its parts, makes: whose ends are to be watched.
func Certificates(s Step) []Certificate {
	switch s := s.(type) {
	case Certificate:
		return []Certificate{s}
	case Sequence:
		var all []Certificate
		for _, p := range s.Parts {
			all = append(all, Certificates(p)...)
		}
		return all
	}
	return nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/util/keyutil"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Fingerprint identifies an authority by its public key: "sha256:" and 64 hex digits of the SubjectPublicKeyInfo (DER) of the first
// certificate in certPEM, which is kubeadm's pin of it ("discovery-token-ca-cert-hash"). A certificate that was issued again for the
// same key has the same. Of service account keys, certPEM is the public key.
func Fingerprint(certPEM []byte) (string, error) {
	var der []byte
	if cert, err := first(certPEM); err == nil {
		der = cert.RawSubjectPublicKeyInfo
	} else if keys, keyErr := keyutil.ParsePublicKeysPEM(certPEM); keyErr != nil || len(keys) == 0 {
		return "", errors.Join(err, keyErr)
	} else if der, err = x509.MarshalPKIXPublicKey(keys[0]); err != nil {
		return "", err
	}
	return fingerprintOf(der), nil
}

// KeyFingerprint is the Fingerprint of the certificate, or of the public key, that a private key belongs to.
func KeyFingerprint(key secret.Value) (string, error) {
	private, err := parseKey(key)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return "", err
	}
	return fingerprintOf(der), nil
}

func fingerprintOf(der []byte) string {
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Fingerprints are those of a cluster's pairs, by their names in Cluster API.
type Fingerprints map[string]string

// Fingerprints are those of the pairs of a that are there.
func (a *Authorities) Fingerprints() (Fingerprints, error) {
	all := Fingerprints{}
	for _, name := range Names() {
		pair := a.at(name)
		if len(pair.Cert) == 0 {
			continue
		}
		fingerprint, err := Fingerprint(pair.Cert)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = fingerprint
	}
	if !a.Encryption.IsZero() {
		fingerprint, err := EncryptionFingerprint(a.Encryption.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", EncryptionName, err)
		}
		all[EncryptionName] = fingerprint
	}
	return all, nil
}

// String writes f as name=fingerprint, in the order of the names, with commas between them. It holds no secrets.
func (f Fingerprints) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		parts = append(parts, name+"="+f[name])
	}
	return strings.Join(parts, ",")
}

// ParseFingerprints reads what String writes; "" has none.
func ParseFingerprints(text string) (Fingerprints, error) {
	all := Fingerprints{}
	if text == "" {
		return all, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, fingerprint, found := strings.Cut(part, "=")
		if !found || !slices.Contains(AllNames(), name) || !fingerprintForm.MatchString(fingerprint) {
			return nil, fmt.Errorf("%q is no fingerprint of one of %s, such as ca=sha256: and 64 hexadecimal digits", part, strings.Join(AllNames(), ", "))
		}
		all[name] = fingerprint
	}
	return all, nil
}

var fingerprintForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Names are the names of the pairs that every cluster has, in the order in which they are made.
func Names() []string { return []string{ClusterName, EtcdName, FrontProxyName, ServiceAccountName} }

// AllNames are those, and the name of the encryption key, which only some clusters have.
func AllNames() []string { return append(Names(), EncryptionName) }

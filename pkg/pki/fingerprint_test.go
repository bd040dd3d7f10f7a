// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"maps"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

func TestFingerprint(t *testing.T) {
	one, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	prints, err := one.Fingerprints()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range pki.Names() {
		pair, _ := one.Get(name)
		again, err := pki.Fingerprint(pair.Cert)
		if err != nil || again != prints[name] || len(again) != len("sha256:")+64 || seen[again] {
			t.Errorf("%s: %q, %q, %v", name, again, prints[name], err)
		}
		seen[again] = true
		if ofKey, err := pki.KeyFingerprint(pair.Key); err != nil || ofKey != again {
			t.Errorf("%s: %q by its key, %v", name, ofKey, err)
		}
	}
	if read, err := pki.ParseFingerprints(prints.String()); err != nil || !maps.Equal(read, prints) {
		t.Errorf("%q is read as %v, %v", prints, read, err)
	}
	for _, bad := range []string{"ca", "ca=", "ca=sha256:1", "x=" + prints["ca"], prints.String() + ","} {
		if got, err := pki.ParseFingerprints(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
	for _, bad := range []string{"", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if got, err := pki.Fingerprint([]byte(bad)); err == nil {
			t.Errorf("%q has the fingerprint %q", bad, got)
		}
	}
}

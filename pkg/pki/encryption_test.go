// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// TestEncryptionKey: a key is 32 bytes that nobody has had before, and is not to be seen.
func TestEncryptionKey(t *testing.T) {
	one, other := pki.NewEncryptionKey(), pki.NewEncryptionKey()
	if one.Key.Equal(other.Key) {
		t.Fatal("two keys are the same")
	}
	key, err := base64.StdEncoding.DecodeString(string(one.Key.Reveal()))
	if err != nil || len(key) != 32 || one.CheckEncryptionKey() != nil {
		t.Fatalf("%d bytes (%v), check %v", len(key), err, one.CheckEncryptionKey())
	}
	if text := fmt.Sprintf("%v %+v %#v", one, one, one); strings.Contains(text, string(one.Key.Reveal())) {
		t.Errorf("it is shown: %s", text)
	}
	for name, text := range map[string]string{
		"empty": "", "short": base64.StdEncoding.EncodeToString(key[:16]), "long": base64.StdEncoding.EncodeToString(append(key, 0)),
		"raw": string(key), "with the line's end": string(one.Key.Reveal()) + "\n",
		"broken over lines": string(one.Key.Reveal()[:20]) + "\n" + string(one.Key.Reveal()[20:]),
		"without padding":   base64.RawStdEncoding.EncodeToString(key), "for URLs": base64.URLEncoding.EncodeToString([]byte(strings.Repeat("\xff", 32))),
	} {
		bad := pki.KeyPair{Key: secret.New(text)}
		if err := bad.CheckEncryptionKey(); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want an error without the key", name, err)
		}
		if _, err := pki.EncryptionFingerprint(bad.Key); err == nil {
			t.Errorf("%s: it has a fingerprint", name)
		}
	}
}

// TestEncryptionFingerprint: it is the same for the same key alone, and is the digest of nothing that lies on a host.
func TestEncryptionFingerprint(t *testing.T) {
	a, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	if without, err := a.Fingerprints(); err != nil || len(without) != 4 {
		t.Errorf("a cluster without a key has %v (%v)", without, err)
	}
	if !a.CompleteEncryption() || a.CompleteEncryption() {
		t.Error("it is to be made once")
	}
	if err := a.Check(time.Now()); err != nil {
		t.Error(err)
	}
	prints, err := a.Fingerprints()
	if err != nil || len(prints) != 5 {
		t.Fatalf("got %v (%v)", prints, err)
	}
	read, err := pki.ParseFingerprints(prints.String())
	if err != nil || read[pki.EncryptionName] != prints[pki.EncryptionName] {
		t.Errorf("read back, it is %v (%v)", read, err)
	}
	raw, err := base64.StdEncoding.DecodeString(string(a.Encryption.Key.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range [][]byte{raw, a.Encryption.Key.Reveal()} {
		if sum := sha256.Sum256(content); strings.Contains(prints[pki.EncryptionName], hex.EncodeToString(sum[:])) {
			t.Error("it is a digest of the key itself")
		}
	}
	if other, err := pki.EncryptionFingerprint(pki.NewEncryptionKey().Key); err != nil || other == prints[pki.EncryptionName] {
		t.Errorf("another key has %s (%v)", other, err)
	}
	a.Encryption.Key = secret.New("short")
	if err := a.Check(time.Now()); err == nil || !strings.HasPrefix(err.Error(), "encryption: ") {
		t.Errorf("got %v", err)
	}
}

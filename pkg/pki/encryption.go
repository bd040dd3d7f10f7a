// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

const (
	// EncryptionName is the name of the key with which API servers encrypt what they store. Its Secret is called <cluster>-encryption, as
	// if Cluster API knew it. Only clusters with encryption at rest have one.
	EncryptionName = "encryption"
	// EncryptionKeyName is the key of that Secret's data.
	EncryptionKeyName = "key"

	// encryptionKeySize is how many bytes XSalsa20-Poly1305 and AES-256 take.
	encryptionKeySize = 32
)

// NewEncryptionKey makes a key of 32 random bytes. Key has them in base64, as EncryptionConfiguration (apiserver.config.k8s.io/v1) does;
// there is no Cert.
func NewEncryptionKey() KeyPair {
	key := make([]byte, encryptionKeySize)
	_, _ = rand.Read(key) // it ends the process rather than fail
	return KeyPair{Key: secret.New(base64.StdEncoding.EncodeToString(key))}
}

// CheckEncryptionKey returns nil if p is a key as NewEncryptionKey makes it. Whatever else decodes to the same bytes is refused: hosts
// compare the text.
func (p KeyPair) CheckEncryptionKey() error {
	if p.Key.IsZero() {
		return errors.New("there is none")
	}
	key, err := base64.StdEncoding.Strict().DecodeString(string(p.Key.Reveal()))
	if err != nil || len(key) != encryptionKeySize || len(p.Key.Reveal()) != base64.StdEncoding.EncodedLen(encryptionKeySize) {
		return fmt.Errorf("it is not %d bytes in base64, on one line without its end", encryptionKeySize)
	}
	return nil
}

// EncryptionFingerprint identifies an encryption key as Fingerprint does a pair: "sha256:" and 64 hex digits, of which the key cannot be
// learnt, and which are not those of any file that has it.
func EncryptionFingerprint(key secret.Value) (string, error) {
	if err := (KeyPair{Key: key}).CheckEncryptionKey(); err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key.Reveal())
	mac.Write([]byte("kubexm encryption key"))
	return "sha256:" + hex.EncodeToString(mac.Sum(nil)), nil
}

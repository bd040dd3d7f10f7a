// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// NewUserKey makes a private key (Ed25519) to log in with, in OpenSSH's PEM.
func NewUserKey(comment string) (secret.Value, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return secret.Value{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return secret.Value{}, err
	}
	return secret.New(pem.EncodeToMemory(block)), nil
}

// NewHostKey makes a private host key of a type that hosts rarely have of their own (ECDSA P-384), as SEC 1 in PEM: that is half as long
// as OpenSSH's own form. AuthorizedKey has its public half.
func NewHostKey() (secret.Value, error) {
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		return secret.Value{}, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return secret.Value{}, err
	}
	return secret.New(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), nil
}

// PublicKey is one line of authorized_keys, which has no options, as the key alone, and its type, such as ecdsa-sha2-nistp521.
func PublicKey(line string) (key string, kind string, err error) {
	parsed, err := parseLine(line)
	if err != nil {
		return "", "", err
	}
	return authorizedLine(parsed), parsed.Type(), nil
}

// parseLine reads the one public key of line. What x/crypto would skip, such as lines before it, is an error.
func parseLine(line string) (ssh.PublicKey, error) {
	line = strings.TrimSpace(line)
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || len(options) > 0 || strings.ContainsAny(line, "\r\n") {
		return nil, errors.New("it is not one line of a public key without options")
	}
	return key, nil
}

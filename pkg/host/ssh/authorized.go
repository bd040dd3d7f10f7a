// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// AuthorizedKey is the line of authorized_keys (sshd(8)) that lets a private key in. The passphrase opens a key that is
// encrypted.
func AuthorizedKey(private, passphrase secret.Value) (string, error) {
	signer, err := parseKey(private, passphrase)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Bounds of users' certificates. They are for one run of work: whoever has found an old one has nothing.
const (
	MinValidity = time.Minute
	MaxValidity = 24 * time.Hour
	// clockSkew is how far the clock of a host may be behind ours.
	clockSkew = time.Minute
	// maxKeyID and maxPrincipal are in bytes. sshd writes both to its log.
	maxKeyID     = 256
	maxPrincipal = 128
)

// Permit is what a user's certificate permits beyond running commands: an extension of OpenSSH's PROTOCOL.certkeys.
type Permit string

// PermitPortForwarding is for a user of jump hosts.
const PermitPortForwarding Permit = "permit-port-forwarding"

// UserCA is an authority that signs users' keys. It is safe for concurrent use.
type UserCA struct{ signer ssh.Signer }

// NewUserCA makes an authority of its private key: the content of a PEM file, not encrypted.
func NewUserCA(private secret.Value) (*UserCA, error) {
	signer, err := parseKey(private, secret.Value{})
	if err != nil {
		return nil, fmt.Errorf("the private key of the user CA: %w", err)
	}
	if kind := signer.PublicKey().Type(); algorithmsOf[kind] == nil {
		return nil, fmt.Errorf("the private key of the user CA: its type %s cannot sign certificates; make it ed25519", kind)
	}
	return &UserCA{signer: signer}, nil
}

// PublicKey is the line ("ssh-ed25519 AAAA…") for the file that TrustedUserCAKeys names in sshd_config(5).
func (a *UserCA) PublicKey() string { return authorizedLine(a.signer.PublicKey()) }

// Sign signs the public key of a user (a line "ssh-ed25519 AAAA…") for hosts that let principal in: the name of the account, or
// a name in their AuthorizedPrincipalsFile. The certificate is a line, too ("ssh-ed25519-cert-v01@openssh.com AAAA…"). It is
// valid from a minute before now, for hosts whose clock is late, to validity after now: MinValidity to MaxValidity. Hosts log
// keyID. It permits no terminal and no forwarding of anything, but for permits.
func (a *UserCA) Sign(user, principal string, validity time.Duration, now time.Time, keyID string, permits ...Permit) (string, error) {
	key, err := parseLine(user)
	if err != nil {
		return "", fmt.Errorf("sign a user's key: %w", err)
	}
	cert, err := a.sign(key, principal, validity, now, keyID, permits)
	if err != nil {
		return "", err
	}
	return authorizedLine(cert), nil
}

func (a *UserCA) sign(
	user ssh.PublicKey, principal string, validity time.Duration, now time.Time, keyID string, permits []Permit,
) (*ssh.Certificate, error) {
	var serial [8]byte
	_, _ = rand.Read(serial[:]) // never fails
	cert := &ssh.Certificate{
		Key: user, CertType: ssh.UserCert, Serial: binary.BigEndian.Uint64(serial[:]), KeyId: keyID, ValidPrincipals: []string{principal},
		ValidAfter: uint64(now.Add(-clockSkew).Unix()), ValidBefore: uint64(now.Add(validity).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{}},
	}
	for _, p := range permits {
		cert.Extensions[string(p)] = ""
	}
	var wrong error
	switch {
	case slices.ContainsFunc(permits, func(p Permit) bool { return p != PermitPortForwarding }):
		wrong = fmt.Errorf("nothing but %s can be permitted, not %q", PermitPortForwarding, permits)
	case algorithmsOf[user.Type()] == nil:
		wrong = fmt.Errorf("keys of type %s are not signed; make it ed25519", user.Type())
	case validity < MinValidity || validity > MaxValidity:
		wrong = fmt.Errorf("it would be valid for %s; give %s to %s", validity, MinValidity, MaxValidity)
	case now.Unix() < int64(clockSkew/time.Second):
		wrong = errors.New("the time is not set")
	case principal == "" || len(principal) > maxPrincipal || strings.ContainsFunc(principal, notInPrincipal):
		wrong = fmt.Errorf("the principal %q is empty, longer than %d bytes, or has a character that divides principals",
			host.Word(principal, maxPrincipal), maxPrincipal)
	case keyID == "" || len(keyID) > maxKeyID || strings.ContainsFunc(keyID, func(r rune) bool { return !unicode.IsPrint(r) }):
		wrong = fmt.Errorf("the key ID %q is empty, longer than %d bytes, or cannot be printed", host.Word(keyID, maxKeyID), maxKeyID)
	default:
		wrong = cert.SignCert(rand.Reader, a.signer)
	}
	if wrong != nil {
		return nil, fmt.Errorf("sign a user's key: %w", wrong)
	}
	return cert, nil
}

// notInPrincipal: an AuthorizedPrincipalsFile is divided by blanks and comments, lists of principals by commas.
func notInPrincipal(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(` ,#"`, r) }

// NewLogin is a login by a key made for it, which is kept in memory alone, and its certificate. The arguments are those of
// UserCA.Sign.
func NewLogin(ca *UserCA, principal string, validity time.Duration, now time.Time, keyID string, permits ...Permit) (Auth, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Auth{}, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return Auth{}, err
	}
	cert, err := ca.sign(signer.PublicKey(), principal, validity, now, keyID, permits)
	if err != nil {
		return Auth{}, err
	}
	if signer, err = ssh.NewCertSigner(cert, signer); err != nil {
		return Auth{}, err
	}
	return Auth{Signers: []ssh.Signer{signer}}, nil
}

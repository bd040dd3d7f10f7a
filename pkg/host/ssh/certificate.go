// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// certified is what the name of an algorithm ends with when the key comes with a certificate (OpenSSH's PROTOCOL.certkeys).
const certified = "-cert-v01@openssh.com"

// parseAuthority reads the public key of an authority.
func parseAuthority(line string) (ssh.PublicKey, error) {
	key, err := parseLine(line)
	if err == nil && algorithmsOf[key.Type()] == nil {
		err = fmt.Errorf("a key of type %s cannot be an authority", key.Type())
	}
	return key, err
}

// lists reports whether Revoked has a key, of a host or of an authority.
func (c *keyCheck) lists(key ssh.PublicKey) bool {
	return slices.Contains(c.revoked, ssh.FingerprintSHA256(key))
}

// marksRevoked reports whether known_hosts files mark a key, of a host or of an authority, as @revoked.
func (c *keyCheck) marksRevoked(hostname string, remote net.Addr, key ssh.PublicKey) bool {
	var revoked *xknownhosts.RevokedError
	return c.known != nil && errors.As(c.known.HostKeyCallback()(hostname, remote, key), &revoked)
}

// judgeCertificate judges what a host shows with a key that is not revoked itself.
func (c *keyCheck) judgeCertificate(hostname string, remote net.Addr, cert *ssh.Certificate) *keyFailure {
	var why string
	isAuthority := func(key ssh.PublicKey) bool {
		return slices.ContainsFunc(c.authorities, func(a ssh.PublicKey) bool { return slices.Equal(a.Marshal(), key.Marshal()) })
	}
	// To x/crypto, an empty list is for every host.
	named := slices.IndexFunc(cert.ValidPrincipals, func(p string) bool { return p == c.address || p == c.name })
	switch {
	case cert.CertType != ssh.HostCert:
		why = "it is not a host's but a user's"
	case !isAuthority(cert.SignatureKey):
		why = "its authority is not one of those given"
	case c.lists(cert.SignatureKey), c.marksRevoked(hostname, remote, cert.SignatureKey):
		why = "its authority is revoked"
	case named < 0:
		ours := slices.Compact([]string{c.name, c.address})
		why = fmt.Sprintf("it is for %s, and not for %s", principals(cert), strings.Join(ours, " or "))
	case !validAt(cert, time.Now()):
		why = "it is valid " + validity(cert)
	case cert.Signature.Format == ssh.KeyAlgoRSA:
		why = "it is signed with SHA-1"
	default:
		checker := ssh.CertChecker{}
		err := checker.CheckCert(cert.ValidPrincipals[named], cert)
		if err == nil {
			return nil
		}
		why = host.Word(err.Error(), maxReason)
	}
	return &keyFailure{
		message: fmt.Sprintf("the host's certificate by the authority %s is refused: %s; nothing was sent to it",
			ssh.FingerprintSHA256(cert.SignatureKey), why),
		remedy: "make sure that this is the right host, see its certificate there (ssh-keygen -Lf, of the file that HostCertificate " +
			"in its sshd_config names) and have its key signed again",
	}
}

func principals(cert *ssh.Certificate) string {
	if len(cert.ValidPrincipals) == 0 {
		return "nobody by name"
	}
	return host.Word(strings.Join(cert.ValidPrincipals, ", "), maxReason)
}

func validAt(cert *ssh.Certificate, now time.Time) bool {
	at := uint64(max(now.Unix(), 0))
	return cert.ValidAfter <= at && at < cert.ValidBefore
}

// validity is when a certificate is valid, in words.
func validity(cert *ssh.Certificate) string {
	return "from " + moment(cert.ValidAfter) + " to " + moment(cert.ValidBefore)
}

func moment(seconds uint64) string {
	if seconds > math.MaxUint32 { // after the year 2106; ssh.CertTimeInfinity is
		return "the end of time"
	}
	return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// Authority is a key pair of the cluster in two files: the Secret's tls.crt in cert, 0644, and its tls.key in key, 0600. With key "" it
// is the certificate alone. What is missing on the host is written. A host that has another authority is refused before anything of a
// run is done there: what it has was signed by that one, and would be cut off from the rest of its cluster.
func Authority(secret, cert, key string) []Step {
	parts := []Step{File{Path: cert, Mode: certMode, Content: Secret(secret, certKey), Authority: cert}}
	if key != "" {
		parts = append(parts, File{Path: key, Mode: keyMode, Content: Secret(secret, privateKey), Authority: cert})
	}
	return parts
}

// checkAuthority refuses a host whose half of a key pair is of another authority. The certificate tells, or the service account's public
// key; where it is missing or unreadable, a private key that is not the declared one does.
func (f File) checkAuthority(v View) error {
	if len(f.Content) != 1 || f.Content[0].Secret == nil {
		return fmt.Errorf("file %s: the content of an authority's file is one key of a Secret", f.Path)
	}
	secret := f.Content[0].Secret.Name
	known, err := sameAuthority(v, secret, f.Authority)
	if known || err != nil || f.Path == f.Authority {
		return err
	}
	want, err := f.digest(v.Values)
	if err != nil {
		return err
	}
	if have := v.Facts.Paths[f.Path]; have.Exists && have.Mode.IsRegular() && have.Digest != want {
		return otherAuthority(v, fmt.Sprintf("%s is another private key than that of the cluster's key pair %s, and %s is missing or "+
			"unreadable", f.Path, secret, f.Authority))
	}
	return nil
}

// sameAuthority reports whether the host has the authority of a Secret in the file at path. If it has another one, that is the error: a
// rotation, where one is declared, would allow it here. A file that is missing or unreadable tells nothing.
func sameAuthority(v View, secret, path string) (bool, error) {
	declared, err := v.Values.Secret(SecretRef{Name: secret, Key: certKey})
	if err != nil {
		return false, err
	}
	has, err := pki.Fingerprint(v.Facts.Paths[path].Content)
	if err != nil {
		return false, nil //nolint:nilerr // what is not there, or cannot be read, is no authority
	}
	want, err := pki.Fingerprint(declared)
	if err != nil {
		return false, fmt.Errorf("secret %s: %w", SecretRef{Name: secret, Key: certKey}, err)
	}
	if has != want {
		return false, otherAuthority(v, fmt.Sprintf("%s is of another authority (%s) than the cluster's key pair %s (%s)", path, has, secret, want))
	}
	return true, nil
}

// otherAuthority is the refusal of a host.
func otherAuthority(v View, message string) *host.Error {
	name, _, _ := strings.Cut(v.Node, "/")
	return &host.Error{
		Kind: host.KindOtherAuthority, Host: name, Message: message + ": nothing is changed on the host",
		Remedy: "if the host belongs to this cluster, restore the key pairs that it was made with: from a backup, or from a control plane " +
			"host by kubexm certs recover. If it belongs to another cluster, reset it there first",
	}
}

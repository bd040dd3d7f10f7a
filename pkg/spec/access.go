// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,63}$`)

// ValidateUser checks the name of a user on a host.
func ValidateUser(user string, path *field.Path) field.ErrorList {
	switch {
	case user == "":
		return field.ErrorList{field.Required(path, "give the user who logs in, such as root or ops")}
	case !userName.MatchString(user):
		return field.ErrorList{field.Invalid(path, user, "use the name of a user on the host, such as root or ops")}
	}
	return nil
}

// ValidateHostKey checks the form of a host's public key: the fingerprint that ssh-keygen -l prints, or the whole key.
func ValidateHostKey(key string, path *field.Path) field.ErrorList {
	switch {
	case key == "":
		return field.ErrorList{field.Required(path, "pin the host's public key: on the host, ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub prints it (SHA256:…)")}
	case !isFingerprint(key) && !isPublicKey(key):
		return field.ErrorList{field.Invalid(path, key, "use SHA256:… as ssh-keygen -lf prints it, or a whole public key such as ssh-ed25519 AAAA…")}
	}
	return nil
}

func isFingerprint(s string) bool {
	digest, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimPrefix(s, "SHA256:"))
	return strings.HasPrefix(s, "SHA256:") && err == nil && len(digest) == 32
}

// isPublicKey reports whether s is a key as in authorized_keys. Its bytes begin with the name of its type (RFC 4253, section 6.6).
func isPublicKey(s string) bool {
	kind, encoded, found := strings.Cut(s, " ")
	encoded, _, _ = strings.Cut(encoded, " ")
	key, err := base64.StdEncoding.DecodeString(encoded)
	begin := append(binary.BigEndian.AppendUint32(nil, uint32(len(kind))), kind...)
	return found && kind != "" && err == nil && bytes.HasPrefix(key, begin) && len(key) > len(begin)
}

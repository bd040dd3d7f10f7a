// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"net"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Access is how a host is reached over SSH, and who logs in there.
type Access struct {
	// user is who logs in: root, or a user with sudo. Of a KubexmHost it is required. Else, if unset, kubexm, whom the bootstrap data
	// makes on the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	User string `json:"user,omitempty"`

	// port is where sshd listens. If unset, 22.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// credentials are what the user logs in with. Of a KubexmHost they are required. Else, if unset, a key that is made for the Cluster,
	// in the Secret <cluster>-ssh, and that the bootstrap data authorizes.
	// +optional
	Credentials Credentials `json:"credentials,omitempty,omitzero"`

	// hostKeys are the keys by which the host is known. They are never learned from the network. Of a KubexmHost they are required.
	// Else, if unset, the bootstrap data brings a key to the host, in the place of which the first connection pins one made there.
	// +optional
	HostKeys HostKeys `json:"hostKeys,omitempty,omitzero"`

	// proxyJump is a host through which this one is reached, as by ssh -J. If unset, it is reached directly.
	// +optional
	ProxyJump ProxyJump `json:"proxyJump,omitempty,omitzero"`
}

// ProxyJump is a host that connections to others are forwarded by (a bastion). Nothing is changed on it.
type ProxyJump struct {
	// host is the jump host's DNS name or IP address, as the manager reaches it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`

	// port is where the jump host's sshd listens. If unset, 22.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// user is who logs in on the jump host. The user needs no sudo there, but must be allowed to forward TCP connections.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	User string `json:"user,omitempty"`

	// credentials are what the user logs in with on the jump host.
	// +required
	Credentials Credentials `json:"credentials,omitempty,omitzero"`

	// hostKeys are the keys by which the jump host is known.
	// +required
	HostKeys HostKeys `json:"hostKeys,omitempty,omitzero"`
}

// Credentials are what a user logs in with.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type Credentials struct {
	// secretRef is a Secret in the namespace of the object that names it. Its keys are those of type kubernetes.io/ssh-auth and more:
	// ssh-privatekey, passphrase (of the private key), password (of the user, where there is no key) and sudo-password (where sudo asks
	// for one).
	// +optional
	SecretRef SecretReference `json:"secretRef,omitempty,omitzero"`
}

// HostKeys are the public keys, one of which a host must show before anything is sent to it.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type HostKeys struct {
	// pinned are keys that were brought by a way that is trusted: fingerprints as ssh-keygen -l prints them (SHA256:…), or whole keys
	// (ssh-ed25519 AAAA…). In a template they are the keys of all hosts that are made from it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=50
	// +kubebuilder:validation:items:MaxLength=8192
	Pinned []string `json:"pinned,omitempty"`
}

// IsZero reports whether nothing is said of how the host is reached.
func (a Access) IsZero() bool {
	return a.User == "" && a.Port == 0 && a.Credentials == (Credentials{}) && len(a.HostKeys.Pinned) == 0 && a.ProxyJump.IsZero()
}

// IsZero reports whether there is no jump host.
func (j ProxyJump) IsZero() bool {
	return j.Host == "" && j.Port == 0 && j.User == "" && j.Credentials == (Credentials{}) && len(j.HostKeys.Pinned) == 0
}

// Endpoint is where the jump host is dialled.
func (j ProxyJump) Endpoint() string {
	return net.JoinHostPort(j.Host, strconv.Itoa(int(cmp.Or(j.Port, defaultSSHPort))))
}

// defaultSSHPort is where sshd listens if nothing else is said.
const defaultSSHPort = 22

// Validate checks how a host is reached that nobody else says anything of.
func (a *Access) Validate(path *field.Path) field.ErrorList {
	return append(a.require(path), a.ValidateDeclared(path)...)
}

// require asks for what bootstrap data would bring.
func (a *Access) require(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a.User == "" {
		errs = append(errs, ValidateUser("", path.Child("user"))...)
	}
	return append(errs, requireLogin(path, &a.Credentials, &a.HostKeys)...)
}

// ValidateDeclared checks what is said of how a host is reached. What is left out, the bootstrap data brings.
func (a *Access) ValidateDeclared(path *field.Path) field.ErrorList {
	errs := validateLogin(path, a.User, a.Port, &a.Credentials, &a.HostKeys)
	if a.ProxyJump.IsZero() {
		return errs
	}
	jump, at := &a.ProxyJump, path.Child("proxyJump")
	switch {
	case jump.Host == "":
		errs = append(errs, field.Required(at.Child("host"), "give the jump host's DNS name or IP address"))
	case net.ParseIP(jump.Host) == nil && len(validation.IsDNS1123Subdomain(jump.Host)) > 0:
		errs = append(errs, field.Invalid(at.Child("host"), jump.Host, "use a DNS name or an IP address, without a port: that is the field port"))
	}
	if jump.User == "" {
		errs = append(errs, ValidateUser("", at.Child("user"))...)
	}
	errs = append(errs, requireLogin(at, &jump.Credentials, &jump.HostKeys)...)
	return append(errs, validateLogin(at, jump.User, jump.Port, &jump.Credentials, &jump.HostKeys)...)
}

func requireLogin(path *field.Path, credentials *Credentials, keys *HostKeys) field.ErrorList {
	var errs field.ErrorList
	if credentials.SecretRef.Name == "" {
		errs = append(errs, field.Required(path.Child("credentials", "secretRef", "name"),
			"name a Secret in this namespace with ssh-privatekey or password"))
	}
	if len(keys.Pinned) == 0 {
		errs = append(errs, ValidateHostKey("", path.Child("hostKeys", "pinned"))...)
	}
	return errs
}

func validateLogin(path *field.Path, user string, port int32, credentials *Credentials, keys *HostKeys) field.ErrorList {
	var errs field.ErrorList
	if user != "" {
		errs = ValidateUser(user, path.Child("user"))
	}
	if port < 0 || port > 65535 {
		errs = append(errs, field.Invalid(path.Child("port"), port, "use the port of sshd, 1 to 65535, or leave it out for 22"))
	}
	if name := credentials.SecretRef.Name; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		errs = append(errs, field.Invalid(path.Child("credentials", "secretRef", "name"), name, "use the name of a Secret in this namespace"))
	}
	pinned := path.Child("hostKeys", "pinned")
	for i, key := range keys.Pinned {
		errs = append(errs, ValidateHostKey(key, pinned.Index(i))...)
	}
	return append(errs, unique(pinned, keys.Pinned, itself)...)
}

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

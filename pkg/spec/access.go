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
	"slices"
	"strconv"
	"strings"
	"time"

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

	// credentials are what the user logs in with. Of a KubexmHost they are required. Else the bootstrap data authorizes them; if unset, a
	// key that is made for the Cluster, in the Secret <cluster>-ssh. Hosts that have run their data do not follow another key or authority:
	// authorize it there first.
	// +optional
	Credentials Credentials `json:"credentials,omitempty,omitzero"`

	// hostKeys are the keys by which the host is known. They are never learned from the network. Of a KubexmHost they are required.
	// Else, if unset, the bootstrap data brings a key to the host, in the place of which the first connection pins one made there.
	// +optional
	HostKeys HostKeys `json:"hostKeys,omitempty,omitzero"`

	// proxyJump is a host through which this one is reached, as by ssh -J. If unset, it is reached directly.
	// +optional
	ProxyJump ProxyJump `json:"proxyJump,omitempty,omitzero"`

	// connection is who opens the connection: Dial, the manager, or CallHome, the host, which is the server of SSH on it all the same
	// (RFC 8071), for hosts that the manager cannot reach, or whose sshd is not to listen. The bootstrap data has the host connect to the
	// address that the manager was given (--call-home-address). Not for KubexmHosts, nor with port or proxyJump. It never changes. If
	// unset, Dial.
	// +optional
	Connection Connection `json:"connection,omitempty"`
}

// Connection is who opens the connection to a host.
//
// +kubebuilder:validation:Enum=Dial;CallHome
type Connection string

const (
	// ConnectionDial has the manager dial the host.
	ConnectionDial Connection = "Dial"
	// ConnectionCallHome has the host connect to the manager.
	ConnectionCallHome Connection = "CallHome"
)

// OrDefault is the one that counts.
func (c Connection) OrDefault() Connection { return cmp.Or(c, ConnectionDial) }

// AccessPolicy is whether a host can be logged in on for as long as its Machine lives.
//
// +kubebuilder:validation:Enum=Open;Closed
type AccessPolicy string

const (
	// AccessOpen keeps the way in that the bootstrap data has opened, until the host is reset.
	AccessOpen AccessPolicy = "Open"
	// AccessClosed closes it for good as soon as the host is what it must be and its Node has joined.
	AccessClosed AccessPolicy = "Closed"
)

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

	// userCA is an authority whose signature hosts trust: by TrustedUserCAKeys in their sshd_config, or because the bootstrap data
	// authorizes it for the user. Each login has a key of its own, which is never stored, and a certificate for it that is valid for
	// minutes.
	// +optional
	UserCA UserCA `json:"userCA,omitempty,omitzero"`
}

// UserCA is an authority that signs keys of users.
//
// +kubebuilder:validation:MinProperties=1
type UserCA struct {
	// secretRef is a Secret in the namespace of the object that names it, with the authority's private key as ssh-privatekey, not
	// encrypted. It may have sudo-password, too. Of KubexmHosts and jump hosts it is required. Else, if unset, an authority that is made
	// for the Cluster, in the Secret <cluster>-ssh-authority.
	// +optional
	SecretRef SecretReference `json:"secretRef,omitempty,omitzero"`

	// principal is whom certificates are for: the user, or a name that the host's AuthorizedPrincipalsFile has for the user. Where the
	// bootstrap data authorizes the authority, it is any name, of letters, digits and ._@:+=/-. If unset, the user.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\s,#"]+$`
	Principal string `json:"principal,omitempty"`

	// validitySeconds is for how long one can log in with a certificate; a connection lasts longer. If unset, 300.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	ValiditySeconds int32 `json:"validitySeconds,omitempty"`
}

// UserCAValidity is how long certificates are valid if nothing is said.
const UserCAValidity = 5 * time.Minute

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

	// authorities are public keys (ssh-ed25519 AAAA…) of those who sign keys of hosts. A host shows a certificate that is valid and has the
	// KubexmHost's name or its address among its principals. For KubexmHosts and jump hosts alone.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=50
	// +kubebuilder:validation:items:MaxLength=8192
	Authorities []string `json:"authorities,omitempty"`
}

// IsZero reports whether no key is known.
func (k HostKeys) IsZero() bool { return len(k.Pinned)+len(k.Authorities) == 0 }

// Secret is the Secret that credentials come from, "" if none is named.
func (c Credentials) Secret() string { return cmp.Or(c.SecretRef.Name, c.UserCA.SecretRef.Name) }

// IsUserCA reports whether logins are by certificates of an authority.
func (c Credentials) IsUserCA() bool { return c.UserCA != (UserCA{}) }

// IsZero reports whether nothing is said of how the host is reached.
func (a Access) IsZero() bool {
	return a.User == "" && a.Port == 0 && a.Credentials == (Credentials{}) && a.HostKeys.IsZero() && a.ProxyJump.IsZero() &&
		a.Connection == ""
}

// IsZero reports whether there is no jump host.
func (j ProxyJump) IsZero() bool {
	return j.Host == "" && j.Port == 0 && j.User == "" && j.Credentials == (Credentials{}) && j.HostKeys.IsZero()
}

// Endpoint is where the jump host is dialled.
func (j ProxyJump) Endpoint() string {
	return net.JoinHostPort(j.Host, strconv.Itoa(int(cmp.Or(j.Port, defaultSSHPort))))
}

// defaultSSHPort is where sshd listens if nothing else is said.
const defaultSSHPort = 22

// Validate checks how a host is reached that nobody else says anything of.
func (a *Access) Validate(path *field.Path) field.ErrorList {
	errs := append(a.require(path), a.ValidateDeclared(path)...)
	if a.Connection == ConnectionCallHome {
		errs = append(errs, field.Forbidden(path.Child("connection"), "no bootstrap data has this host connect to anybody: remove it, and have it dialled"))
	}
	return errs
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
	errs := append(validateLogin(path, a.User, a.Port, &a.Credentials, &a.HostKeys), a.validateConnection(path)...)
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

// validateConnection refuses what is about dialling a host that is not dialled.
func (a *Access) validateConnection(path *field.Path) field.ErrorList {
	known := []Connection{ConnectionDial, ConnectionCallHome}
	if a.Connection != "" && !slices.Contains(known, a.Connection) {
		return field.ErrorList{field.NotSupported(path.Child("connection"), a.Connection, known)}
	}
	if a.Connection != ConnectionCallHome {
		return nil
	}
	var errs field.ErrorList
	for _, one := range []struct {
		name string
		set  bool
	}{{"port", a.Port != 0}, {"proxyJump", !a.ProxyJump.IsZero()}} {
		if one.set {
			errs = append(errs, field.Forbidden(path.Child(one.name), "with connection: CallHome, the host is not dialled: remove either"))
		}
	}
	return errs
}

func requireLogin(path *field.Path, credentials *Credentials, keys *HostKeys) field.ErrorList {
	var errs field.ErrorList
	if credentials.Secret() == "" {
		errs = append(errs, field.Required(path.Child("credentials", "secretRef", "name"),
			"name a Secret in this namespace with ssh-privatekey or password"))
	}
	if credentials.IsUserCA() && credentials.UserCA.SecretRef.Name == "" {
		errs = append(errs, field.Required(path.Child("credentials", "userCA", "secretRef", "name"),
			"name a Secret in this namespace with the authority's ssh-privatekey"))
	}
	if keys.IsZero() {
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
	if ca := credentials.UserCA; credentials.IsUserCA() {
		errs = append(errs, ca.validate(path.Child("credentials", "userCA"))...)
	}
	if credentials.IsUserCA() && credentials.SecretRef.Name != "" {
		errs = append(errs, field.Forbidden(path.Child("credentials", "userCA"), "secretRef says what is logged in with: set one of them"))
	}
	if len(keys.Pinned) > 0 && len(keys.Authorities) > 0 {
		errs = append(errs, field.Forbidden(path.Child("hostKeys", "authorities"), "the host's own key is pinned: set one of them"))
	}
	authorities := path.Child("hostKeys", "authorities")
	for i, key := range keys.Authorities {
		if !isPublicKey(key) {
			errs = append(errs, field.Invalid(authorities.Index(i), key, "use the authority's whole public key, such as ssh-ed25519 AAAA…"))
		}
	}
	errs = append(errs, unique(authorities, keys.Authorities, itself)...)
	pinned := path.Child("hostKeys", "pinned")
	for i, key := range keys.Pinned {
		errs = append(errs, ValidateHostKey(key, pinned.Index(i))...)
	}
	return append(errs, unique(pinned, keys.Pinned, itself)...)
}

var principalName = regexp.MustCompile(`^[^\s,#"]{1,128}$`)

func (u *UserCA) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name := u.SecretRef.Name; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		errs = append(errs, field.Invalid(path.Child("secretRef", "name"), name, "use the name of a Secret in this namespace"))
	}
	if u.Principal != "" && !principalName.MatchString(u.Principal) {
		errs = append(errs, field.Invalid(path.Child("principal"), u.Principal, "use a name without blanks and commas, as in AuthorizedPrincipalsFile"))
	}
	if v := u.ValiditySeconds; v != 0 && (v < 60 || v > 86400) {
		errs = append(errs, field.Invalid(path.Child("validitySeconds"), v, "use 60 to 86400, or leave it out for 300"))
	}
	return errs
}

var userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,63}$`)

var authorizedPrincipal = regexp.MustCompile(`^[A-Za-z0-9._@:+=/-]{1,128}$`)

// ValidateAuthorizedPrincipal checks a principal that bootstrap data writes into authorized_keys.
func ValidateAuthorizedPrincipal(principal string, path *field.Path) field.ErrorList {
	if !authorizedPrincipal.MatchString(principal) {
		return field.ErrorList{field.Invalid(path, principal, "the bootstrap data writes it into authorized_keys: use letters, digits and ._@:+=/-")}
	}
	return nil
}

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

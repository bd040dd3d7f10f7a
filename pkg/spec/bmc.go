// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"crypto/x509"
	"net/url"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// BMC is a machine's management controller, which speaks Redfish.
type BMC struct {
	// address is the URL of the controller's service: https, a DNS name or an IP address and, unless it is 443, a port, such as
	// https://10.0.0.9. It is reached from the manager, without a proxy.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=512
	Address string `json:"address,omitempty"`

	// systemID is which of the controller's ComputerSystems the machine is, such as 1 or System.Embedded.1. If unset, the only one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	SystemID string `json:"systemID,omitempty"`

	// secretRef is what the controller is asked with: a Secret in the namespace of the object that names it, with username and password,
	// of type kubernetes.io/basic-auth, that is labelled bootstrap.cluster.x-k8s.io/for-hosts=credentials.
	// +required
	SecretRef SecretReference `json:"secretRef,omitempty,omitzero"`

	// certificate is how the controller is known.
	// +required
	Certificate BMCCertificate `json:"certificate,omitempty,omitzero"`
}

// BMCCertificate is how a management controller is known. One of its fields is set.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type BMCCertificate struct {
	// sha256Fingerprint is that of the controller's certificate, in hexadecimal with or without colons, as by openssl x509 -fingerprint
	// -sha256. Most controllers have signed theirs themselves.
	// +optional
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=95
	SHA256Fingerprint string `json:"sha256Fingerprint,omitempty"`

	// caBundle are certificates in PEM, one of which has signed the controller's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
}

// IsZero reports whether there is none.
func (b BMC) IsZero() bool { return b == BMC{} }

var fingerprint = regexp.MustCompile(`^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$`)

// Validate checks what is said of a management controller, if there is one.
func (b *BMC) Validate(path *field.Path) field.ErrorList {
	if b.IsZero() {
		return nil
	}
	var errs field.ErrorList
	at, err := url.Parse(b.Address)
	if err != nil || at.Scheme != "https" || at.Hostname() == "" || at.User != nil ||
		at.Path != "" && at.Path != "/" || at.RawQuery != "" || at.Fragment != "" {
		errs = append(errs, field.Invalid(path.Child("address"), b.Address, "use a URL of https, a name or an address and perhaps a port, such as https://10.0.0.9"))
	}
	secret := path.Child("secretRef", "name")
	switch name := b.SecretRef.Name; {
	case name == "":
		errs = append(errs, field.Required(secret, "name a Secret in this namespace with username and password"))
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		errs = append(errs, field.Invalid(secret, name, "use the name of a Secret in this namespace"))
	}
	known, certificate := path.Child("certificate"), &b.Certificate
	switch {
	case (certificate.SHA256Fingerprint == "") == (certificate.CABundle == ""):
		errs = append(errs, field.Required(known, "set one of sha256Fingerprint and caBundle"))
	case certificate.SHA256Fingerprint != "" && !fingerprint.MatchString(certificate.SHA256Fingerprint):
		errs = append(errs, field.Invalid(known.Child("sha256Fingerprint"), certificate.SHA256Fingerprint,
			"use 64 hexadecimal digits, as openssl x509 -noout -fingerprint -sha256 prints them"))
	case certificate.CABundle != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(certificate.CABundle)):
		errs = append(errs, field.Invalid(known.Child("caBundle"), certificate.CABundle, "has no certificate in PEM"))
	}
	return errs
}

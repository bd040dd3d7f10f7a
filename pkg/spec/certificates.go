// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Renewal is who renews certificates.
//
// +kubebuilder:validation:Enum=Automatic;Manual
type Renewal string

const (
	// RenewalAutomatic renews certificates in place some days before they expire, one host after the other.
	RenewalAutomatic Renewal = "Automatic"
	// RenewalManual renews them when somebody asks for it.
	RenewalManual Renewal = "Manual"
)

// KeyAlgorithm is the kind of a private key, by kubeadm's names.
//
// +kubebuilder:validation:Enum=RSA-2048;RSA-3072;RSA-4096;ECDSA-P256;ECDSA-P384
type KeyAlgorithm string

// The kinds of keys that authorities may have.
const (
	KeyRSA2048   KeyAlgorithm = "RSA-2048"
	KeyRSA3072   KeyAlgorithm = "RSA-3072"
	KeyRSA4096   KeyAlgorithm = "RSA-4096"
	KeyECDSAP256 KeyAlgorithm = "ECDSA-P256"
	KeyECDSAP384 KeyAlgorithm = "ECDSA-P384"
)

// Certificates is what the cluster's authorities are, for how long certificates are made, and when they are renewed.
//
// +kubebuilder:validation:MinProperties=1
type Certificates struct {
	// validityDays is for how many days they are made. If unset, 365. It counts for those that are made from then on.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	ValidityDays int32 `json:"validityDays,omitempty"`

	// renewal is who renews them. If unset, Automatic.
	// +optional
	Renewal Renewal `json:"renewal,omitempty"`

	// renewBeforeDays is how many days before they expire they are renewed. If unset, 90, or a third of validityDays where
	// that is less.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	RenewBeforeDays int32 `json:"renewBeforeDays,omitempty"`

	// caAlgorithm is the kind of the private keys of the cluster's authorities and of its service account keys, where they
	// are made here. If unset, RSA-2048. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	CAAlgorithm KeyAlgorithm `json:"caAlgorithm,omitempty"`

	// caValidityDays is for how many days the certificates of authorities are made, where they are made here. If unset,
	// 3650. No certificate lasts longer than that of its authority. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	CAValidityDays int32 `json:"caValidityDays,omitempty"`
}

// CAValidity is for how long the certificates of authorities are made.
func (c *Certificates) CAValidity() time.Duration {
	return time.Duration(c.CAValidityDays) * 24 * time.Hour
}

// Validity is for how long certificates are made.
func (c *Certificates) Validity() time.Duration {
	return time.Duration(c.ValidityDays) * 24 * time.Hour
}

// RenewBefore is how long before they expire they are renewed; 0 means that they are not, because somebody does it by hand.
func (c *Certificates) RenewBefore() time.Duration {
	if c.Renewal == RenewalManual {
		return 0
	}
	return time.Duration(c.RenewBeforeDays) * 24 * time.Hour
}

func (c *Certificates) setDefaults() {
	defaultTo(&c.ValidityDays, 365)
	defaultTo(&c.Renewal, RenewalAutomatic)
	defaultTo(&c.RenewBeforeDays, max(1, min(90, c.ValidityDays/3)))
	defaultTo(&c.CAAlgorithm, KeyRSA2048)
	defaultTo(&c.CAValidityDays, 3650)
}

func (c *Certificates) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.CAValidityDays < c.ValidityDays {
		errs = append(errs, field.Invalid(path.Child("caValidityDays"), c.CAValidityDays, fmt.Sprintf(
			"the authorities would end before the certificates that they sign, which are made for %d days: use a larger number", c.ValidityDays)))
	}
	if c.RenewBeforeDays >= c.ValidityDays && c.ValidityDays > 1 {
		errs = append(errs, field.Invalid(path.Child("renewBeforeDays"), c.RenewBeforeDays, fmt.Sprintf(
			"certificates are made for %d days and would be renewed for ever: use a smaller number", c.ValidityDays)))
	}
	return errs
}

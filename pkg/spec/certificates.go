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

// Certificates is for how long certificates (not those of the authorities) are made, and when they are renewed.
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
}

func (c *Certificates) validate(path *field.Path) field.ErrorList {
	errs := inRange(path.Child("validityDays"), int64(c.ValidityDays), 1, 3650)
	errs = append(errs, oneOf(path.Child("renewal"), c.Renewal, RenewalAutomatic, RenewalManual)...)
	errs = append(errs, inRange(path.Child("renewBeforeDays"), int64(c.RenewBeforeDays), 1, 3650)...)
	if c.RenewBeforeDays >= c.ValidityDays && c.ValidityDays > 1 {
		errs = append(errs, field.Invalid(path.Child("renewBeforeDays"), c.RenewBeforeDays, fmt.Sprintf(
			"certificates are made for %d days and would be renewed for ever: use a smaller number", c.ValidityDays)))
	}
	return errs
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Artifacts is where binaries, images and charts come from.
//
// +kubebuilder:validation:MinProperties=1
type Artifacts struct {
	// bundle is one file with all that a cluster needs. If unset, the artifact store of the machine that runs kubexm.
	// +optional
	Bundle Bundle `json:"bundle,omitempty,omitzero"`
}

// Bundle is one file with all that a cluster needs, at a path or at a URL.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.path) != has(self.url)",message="set exactly one of path and url"
// +kubebuilder:validation:XValidation:rule="!has(self.url) || has(self.sha256)",message="a bundle from a url needs its sha256"
type Bundle struct {
	// path is where the bundle lies on the machine that runs kubexm.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path,omitempty"`

	// url is where the bundle is downloaded from (https:// or http://).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// sha256 is the bundle's digest in lower-case hexadecimal digits; it is verified before anything is taken from the bundle.
	// +optional
	// +kubebuilder:validation:MinLength=64
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`
}

var sha256Digits = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (a *Artifacts) validate(path *field.Path) field.ErrorList {
	if a.Bundle == (Bundle{}) {
		return nil
	}
	return a.Bundle.validate(path.Child("bundle"))
}

func (b *Bundle) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case b.Path == "" && b.URL == "":
		errs = append(errs, field.Required(path, "set path, for a file on the machine that runs kubexm, or url"))
	case b.Path != "" && b.URL != "":
		errs = append(errs, field.Forbidden(path.Child("url"), "a bundle comes from one place: remove url or path"))
	case b.URL != "":
		errs = append(errs, validateURL(path.Child("url"), b.URL)...)
		if b.SHA256 == "" {
			errs = append(errs, field.Required(path.Child("sha256"), "give the bundle's digest, as sha256sum prints it"))
		}
	}
	if b.SHA256 != "" && !sha256Digits.MatchString(b.SHA256) {
		errs = append(errs, field.Invalid(path.Child("sha256"), b.SHA256, "use the 64 lower-case hexadecimal digits that sha256sum prints"))
	}
	return errs
}

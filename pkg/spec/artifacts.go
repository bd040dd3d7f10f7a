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

// Bundle is one file, or one directory, with all that a cluster needs.
type Bundle struct {
	// path is where the bundle lies on the machine that runs kubexm. A manager takes bundles from the directory that it was
	// started with (--bundle) and from nowhere else; a relative path is one below that directory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path,omitempty"`

	// sha256 is the digest of the file, or of the directory's manifest.json, in lower-case hexadecimal digits; it is verified
	// before anything is taken from the bundle.
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
	if b.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), "name a file or a directory on the machine that runs kubexm; download what lies elsewhere first"))
	}
	if b.SHA256 != "" && !sha256Digits.MatchString(b.SHA256) {
		errs = append(errs, field.Invalid(path.Child("sha256"), b.SHA256, "use the 64 lower-case hexadecimal digits that sha256sum prints"))
	}
	return errs
}

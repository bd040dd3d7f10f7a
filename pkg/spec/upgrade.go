// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
)

// ValidateUpgrade refuses the changes of a version of Kubernetes that what runs cannot follow: to an older one, and past a
// minor version. Both versions are valid; see ValidateVersion.
func ValidateUpgrade(from, to string, path *field.Path) field.ErrorList {
	was, err := version.ParseSemantic(from)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	is, err := version.ParseSemantic(to)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	switch {
	case is.LessThan(was):
		return field.ErrorList{field.Invalid(path, to, fmt.Sprintf(
			"Kubernetes cannot be downgraded: %s runs; set it back to %s, or to a later version", from, from))}
	case is.Major() != was.Major():
		return field.ErrorList{field.Invalid(path, to, fmt.Sprintf("%s runs, and no major version may be changed: stay with v%d", from, was.Major()))}
	case is.Minor() > was.Minor()+1:
		return field.ErrorList{field.Invalid(path, to, fmt.Sprintf(
			"%s runs, and no minor version may be skipped: upgrade to a v%d.%d first", from, was.Major(), was.Minor()+1))}
	}
	return nil
}

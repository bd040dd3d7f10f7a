// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tables says which operating systems hosts may have. A family is in its house when its folder is below pkg/os and its line is
// here.
package tables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/debian"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/rhel"
)

// Families are what a host's operating system may be of.
var Families = []struct {
	Systems []family.System
	Of      func(s family.System, release string) family.Family
}{
	{debian.Systems, debian.Of},
	{rhel.Systems, rhel.Of},
}

// UnsupportedError says that an operating system is not in the table. Its text is the cause.
type UnsupportedError struct {
	Cause string
	// Remedy names the systems, or the releases of this one, that are.
	Remedy string
}

// Error is the cause and the remedy.
func (e *UnsupportedError) Error() string { return e.Cause + ": " + e.Remedy }

// Of is the operating system with these ID and VERSION_ID in its /etc/os-release. The error is an *UnsupportedError.
func Of(id, release string) (family.Family, error) {
	for _, f := range Families {
		for _, s := range f.Systems {
			switch {
			case s.ID != id:
			case has(s, release):
				return f.Of(s, release), nil
			default:
				return nil, &UnsupportedError{
					fmt.Sprintf("%s %q is not a supported release of %s", id, release, s.Name),
					"use " + s.Name + " " + strings.Join(s.Releases, " or "),
				}
			}
		}
	}
	cause := "there is no /etc/os-release that names the operating system"
	if found := strings.TrimSpace(id + " " + release); found != "" {
		cause = "the operating system " + found + " is not supported"
	}
	return nil, &UnsupportedError{cause, "use one of " + strings.Join(Supported(), "; ")}
}

// has reports whether the system has the release.
func has(s family.System, release string) bool {
	return slices.ContainsFunc(s.Releases, func(r string) bool {
		return r == release || !strings.Contains(r, ".") && strings.HasPrefix(release, r+".")
	})
}

// Supported are the systems with their releases, for people.
func Supported() []string {
	var all []string
	for _, f := range Families {
		for _, s := range f.Systems {
			all = append(all, s.Name+" "+strings.Join(s.Releases, ", "))
		}
	}
	return all
}

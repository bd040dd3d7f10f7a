// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateNodeUpdate refuses the changes after which a host that is a Node already is not what a new one would be. A host takes on
// what is added or changed; what was done and is not asked for any more stays.
func ValidateNodeUpdate(old, updated *Node, path *field.Path) field.ErrorList {
	errs := ValidateSystemUpdate(&old.System, &updated.System, path.Child("system"))
	for i, f := range updated.Files {
		before := slices.IndexFunc(old.Files, func(o File) bool { return o.Path == f.Path })
		if before >= 0 && old.Files[before].IsAppended() != f.IsAppended() {
			errs = append(errs, field.Forbidden(path.Child("files").Index(i).Child("append"),
				"what was written into the file stays there: set it back, or replace the Machine"))
		}
	}
	return append(errs, stays([]list{
		{path.Child("files"), names(old.Files, func(f File) string { return f.Path }),
			names(updated.Files, func(f File) string { return f.Path })},
		{path.Child("preCommands"), old.PreCommands, updated.PreCommands},
		{path.Child("postCommands"), old.PostCommands, updated.PostCommands},
		{path.Child("hooks"), names(old.Hooks, func(h Hook) string { return h.Name }),
			names(updated.Hooks, func(h Hook) string { return h.Name })},
	})...)
}

// ValidateSharedUpdate is ValidateNodeUpdate for what hosts share.
func ValidateSharedUpdate(old, updated *Cluster, path *field.Path) field.ErrorList {
	was, is := old.System, updated.System
	was.setDefaults()
	is.setDefaults()
	errs := ValidateSystemUpdate(&was, &is, path.Child("system"))
	return append(errs, stays([]list{
		{path.Child("hooks"), names(old.Hooks, func(h Hook) string { return h.Name }),
			names(updated.Hooks, func(h Hook) string { return h.Name })},
	})...)
}

const turnedOff = "what was turned off stays off until the host is reset: set it back, or replace the Machine"

// ValidateSystemUpdate is ValidateNodeUpdate for system settings, be they a host's own or those that hosts share.
func ValidateSystemUpdate(was, is *System, system *field.Path) field.ErrorList {
	var errs field.ErrorList
	// What a host leaves out is its cluster's, which may be Off.
	if was.Swap == PolicyOff && is.Swap != PolicyOff || was.Swap == "" && is.Swap == PolicyKeep {
		errs = append(errs, field.Forbidden(system.Child("swap"), turnedOff))
	}
	switch firewall := system.Child("firewall"); {
	case is.Firewall == was.Firewall, is.Firewall == FirewallOff:
	case was.Firewall == FirewallOff, was.Firewall == "":
		errs = append(errs, field.Forbidden(firewall, turnedOff))
	case was.Firewall == FirewallOpen:
		errs = append(errs, field.Forbidden(firewall, "what was opened stays open until the host is reset: set it back, or replace the Machine"))
	}
	return append(errs, stays([]list{
		{system.Child("packages", "debs"), names(was.Packages.Debs, packageName), names(is.Packages.Debs, packageName)},
		{system.Child("packages", "rpms"), names(was.Packages.RPMs, packageName), names(is.Packages.RPMs, packageName)},
		{system.Child("sysctls"), names(was.Sysctls, func(s Sysctl) string { return s.Name }),
			names(is.Sysctls, func(s Sysctl) string { return s.Name })},
		{system.Child("modules"), was.Modules, is.Modules},
	})...)
}

// list is a list before and after an update.
type list struct {
	at      *field.Path
	was, is []string
}

// stays refuses that something is taken off a list.
func stays(lists []list) field.ErrorList {
	var errs field.ErrorList
	for _, l := range lists {
		for i, name := range l.was {
			if !slices.Contains(l.is, name) {
				errs = append(errs, field.Forbidden(l.at.Index(i), "what is taken off the list stays on the host: put it back, or replace the Machine"))
			}
		}
	}
	return errs
}

func names[T any](list []T, of func(T) string) []string {
	all := make([]string, 0, len(list))
	for _, one := range list {
		all = append(all, of(one))
	}
	return all
}

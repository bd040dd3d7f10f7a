// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateNodeUpdate refuses the changes after which a host that is a Node already is not what a new one would be. A host takes on
// what is added or changed; what a Node registers with stays, and so does what was done and is not asked for any more.
func ValidateNodeUpdate(old, updated *Node, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const registered = "a Node keeps what it registered with: change it by the Node itself as well, or replace the Machine"
	if !maps.Equal(old.NodeLabels, updated.NodeLabels) {
		errs = append(errs, field.Forbidden(path.Child("nodeLabels"), registered))
	}
	if !equality.Semantic.DeepEqual(old.NodeTaints, updated.NodeTaints) {
		errs = append(errs, field.Forbidden(path.Child("nodeTaints"), registered))
	}
	system, was, is := path.Child("system"), &old.System, &updated.System
	for _, policy := range []struct {
		name    string
		was, is Policy
	}{{"swap", was.Swap, is.Swap}, {"firewall", was.Firewall, is.Firewall}} {
		if policy.was == PolicyOff && policy.is != PolicyOff {
			errs = append(errs, field.Forbidden(system.Child(policy.name), "what was turned off stays off until the host is reset: set it back, or replace the Machine"))
		}
	}
	for _, list := range []struct {
		at      *field.Path
		was, is []string
	}{
		{system.Child("packages", "debs"), names(was.Packages.Debs, debName), names(is.Packages.Debs, debName)},
		{system.Child("sysctls"), names(was.Sysctls, func(s Sysctl) string { return s.Name }), names(is.Sysctls, func(s Sysctl) string { return s.Name })},
		{system.Child("modules"), was.Modules, is.Modules},
		{path.Child("files"), names(old.Files, func(f File) string { return f.Path }), names(updated.Files, func(f File) string { return f.Path })},
		{path.Child("preCommands"), old.PreCommands, updated.PreCommands},
		{path.Child("postCommands"), old.PostCommands, updated.PostCommands},
		{path.Child("hooks"), names(old.Hooks, func(h Hook) string { return h.Name }), names(updated.Hooks, func(h Hook) string { return h.Name })},
	} {
		for i, name := range list.was {
			if !slices.Contains(list.is, name) {
				errs = append(errs, field.Forbidden(list.at.Index(i), "what is taken off the list stays on the host: put it back, or replace the Machine"))
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

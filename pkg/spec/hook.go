// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// HookTime is on which side of its task a hook runs.
//
// +kubebuilder:validation:Enum=Before;After
type HookTime string

const (
	// HookBefore hooks have ended before anything of the task begins.
	HookBefore HookTime = "Before"
	// HookAfter hooks run when all of the task is done, and have ended before anything begins that waits for the task.
	HookAfter HookTime = "After"
)

// Hook is a script of the user's own that runs before or after a task, on every host that has the task. Hooks of one task and
// one side run in the order of the list.
type Hook struct {
	// name tells the hook from others, and is what its step is called: hook/<name>. A host's own hook takes the place of the
	// cluster's with the same name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// task is the task's name, as plans have it, such as containerd: one of those that run on hosts. Any other is refused, with
	// the names that there are. Which tasks a host has follows from its role and from how the cluster is made; on a host that
	// does not have the task the hook does nothing.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Task string `json:"task,omitempty"`

	// when is whether the hook runs Before or After the task.
	// +required
	When HookTime `json:"when,omitempty"`

	// commands are shell lines that root runs in this order, once, whatever becomes of the task: on a host whose task is done
	// already, a new hook runs too. A hook that was changed is run again, with all of its lines. When a line fails, or the run is
	// cut, the next run begins with the first line again, so each must bear being run twice. A reset does not undo them.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=10240
	Commands []string `json:"commands,omitempty"`
}

func validateHooks(path *field.Path, hooks []Hook) field.ErrorList {
	var errs field.ErrorList
	for i, h := range hooks {
		at := path.Index(i)
		if len(validation.IsDNS1123Label(h.Name)) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), h.Name,
				"use 1 to 63 lower-case letters, digits and '-', beginning and ending with a letter or digit"))
		}
		errs = append(errs, oneOf(at.Child("task"), h.Task, hookable()...)...)
		if len(h.Commands) == 0 {
			errs = append(errs, field.Required(at.Child("commands"), "give the hook at least one shell line"))
		}
		errs = append(errs, validateCommands(at.Child("commands"), h.Commands)...)
	}
	return append(errs, unique(path, hooks, func(h Hook) string { return h.Name })...)
}

// hookable are the names of the tasks that may have hooks.
func hookable() []string {
	var names []string
	for _, t := range Tasks() {
		if t.Place == OnHosts {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Hooks are those of the host: the cluster's, and the host's own after them.
func (t *Target) Hooks() []Hook {
	return merge(t.Cluster.Hooks, t.Node.Hooks, func(h Hook) string { return h.Name })
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limit is how long a step may take, how often it is tried and on how many hosts at once it is made, where that is not left to
// the step. It is for one step, or for all steps of a task; what both a step's and its task's limit say, the step's says.
//
// +kubebuilder:validation:XValidation:rule="has(self.task) != has(self.step)",message="set exactly one of task and step"
// +kubebuilder:validation:XValidation:rule="has(self.timeoutSeconds) || has(self.attempts) || has(self.concurrency)",message="set at least one of timeoutSeconds, attempts and concurrency"
type Limit struct {
	// task is the name of a task, as plans have it, such as images. Each of its steps is limited by itself; hooks are not.
	// The task that waits for a host's Node and its network, ready-<host>, is ready.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Task string `json:"task,omitempty"`

	// step is the name of a step, as plans have it, such as kubeadm/join; of a hook in the list beside this one it is
	// hook/<name>. The steps that wait for a host's Node and its network, gate/node-<host> and gate/network-<host>, are
	// gate/node and gate/network.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=127
	Step string `json:"step,omitempty"`

	// timeoutSeconds is how long one attempt may take. If unset, as long as the step says, or 5 minutes. A program that gives up
	// by itself, such as kubeadm after 4 minutes without an answer, is not made to wait longer.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// attempts is how often the step is tried in all; with 1 its first failure is final. If unset, as often as the step says.
	// What another attempt cannot mend, such as a full disk, is not tried again, and that a connection was lost does not count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Attempts int32 `json:"attempts,omitempty"`

	// concurrency is on how many of the cluster's hosts at once the step, or any step of the task, is made. If unset, on all.
	// Hosts that have other limits of the same name are counted together, and those without one are not counted. It holds among
	// all hosts that one process works on: those of a manager, whatever Machines they are, or those of one kubexm command;
	// two processes do not know of each other. A host waits before the step and not within a task, so several hosts may
	// be between the first and the last step of a task. What runs on the controller has no host, and cannot have this.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Concurrency int32 `json:"concurrency,omitempty"`
}

// HookStep is what the step of the hook with this name is called.
func HookStep(name string) string { return hookPrefix + name }

const hookPrefix = "hook/"

// validateLimits checks limits; hooks are those that they may be for.
func validateLimits(path *field.Path, limits []Limit, hooks []Hook) field.ErrorList {
	var errs field.ErrorList
	for i := range limits {
		errs = append(errs, limits[i].validate(path.Index(i), hooks)...)
	}
	return append(errs, unique(path, limits, Limit.key)...)
}

func (l Limit) validate(path *field.Path, hooks []Hook) field.ErrorList {
	errs := l.validateName(path, hooks)
	if l.TimeoutSeconds == 0 && l.Attempts == 0 && l.Concurrency == 0 {
		errs = append(errs, field.Required(path, "limits nothing: set timeoutSeconds, attempts or concurrency, or remove it"))
	}
	return errs
}

// validateName checks what the limit is for, and that it has what the limit limits.
func (l Limit) validateName(path *field.Path, hooks []Hook) field.ErrorList {
	task, step := path.Child("task"), path.Child("step")
	var errs field.ErrorList
	switch {
	case l.Task == "" && l.Step == "":
		return field.ErrorList{field.Required(step, "name the step, or the task, that the limit is for")}
	case l.Task != "" && l.Step != "":
		return field.ErrorList{field.Forbidden(step, "a limit is for a task or for a step: remove one of them")}
	case l.Task != "":
		errs = oneOf(task, l.Task, taskNames()...)
	case strings.HasPrefix(l.Step, hookPrefix):
		if !slices.ContainsFunc(hooks, func(h Hook) bool { return HookStep(h.Name) == l.Step }) {
			errs = field.ErrorList{field.Invalid(step, l.Step, "there is no hook of this name in the list of hooks beside it")}
		}
	default:
		errs = oneOf(step, l.Step, stepNames()...)
	}
	if len(errs) == 0 && l.Concurrency != 0 && l.onController() {
		errs = append(errs, field.Forbidden(path.Child("concurrency"),
			cmp.Or(l.Task, l.Step)+" runs on the controller and not on hosts: remove it"))
	}
	return errs
}

// onController reports whether what the limit is for runs on no host.
func (l Limit) onController() bool {
	return slices.ContainsFunc(Tasks(), func(t Task) bool {
		return t.Place == OnController && (t.Name == l.Task || slices.Contains(t.Steps, l.Step))
	})
}

// key is what the limit is for, "" if nothing.
func (l Limit) key() string {
	switch {
	case l.Step != "":
		return "step " + l.Step
	case l.Task != "":
		return "task " + l.Task
	}
	return ""
}

// Bounds is what limits say of one step. A zero value leaves it to the step.
type Bounds struct {
	TimeoutSeconds, Attempts, Concurrency int32
	// Group names those that are counted together for Concurrency: "step kubeadm/join" or "task images".
	Group string
}

// Bounds are those of a step of the host, by its names in a plan: the cluster's limits, and the host's own over them.
func (t *Target) Bounds(task, step string) Bounds {
	var b Bounds
	limits := merge(t.Cluster.Limits, t.Node.Limits, Limit.key)
	if len(limits) == 0 {
		return b
	}
	task, step = t.general(task, taskNames()), t.general(step, stepNames())
	for _, l := range limits {
		if l.Step == step {
			b = b.or(l)
		}
	}
	for _, l := range limits {
		if l.Task == task && !strings.HasPrefix(step, hookPrefix) {
			b = b.or(l)
		}
	}
	return b
}

// general is the name of a task or step without the host's or the addon's name, if that makes it a known one.
func (t *Target) general(name string, known []string) string {
	of := []string{t.Host.Name}
	for _, a := range t.Cluster.Addons {
		of = append(of, a.Name)
	}
	for _, one := range of {
		if short, found := strings.CutSuffix(name, "-"+one); found && slices.Contains(known, short) && !slices.Contains(known, name) {
			return short
		}
	}
	return name
}

// or fills from l what b leaves open.
func (b Bounds) or(l Limit) Bounds {
	defaultTo(&b.TimeoutSeconds, l.TimeoutSeconds)
	defaultTo(&b.Attempts, l.Attempts)
	if b.Concurrency == 0 && l.Concurrency > 0 {
		b.Concurrency, b.Group = l.Concurrency, l.key()
	}
	return b
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/task"
)

// Hooked are all modules of a host with the user's hooks: before and after the tasks that they name. A task that has two parts,
// as kube-vip has, is begun with the first and done with the last; one that has nothing to do this time is still at its place.
func Hooked(in component.Inputs, modules ...plan.Module) []plan.Module {
	modules = cloned(modules)
	first, last := map[string]*plan.Task{}, map[string]*plan.Task{}
	for i := range modules {
		for j := range modules[i].Tasks {
			t := &modules[i].Tasks[j]
			if first[t.Name] == nil {
				first[t.Name] = t
			}
			last[t.Name] = t
		}
	}
	for _, t := range first {
		*t = task.Before(in, *t)
	}
	for _, t := range last {
		*t = task.After(in, *t)
	}
	return modules
}

// Limited are modules with the user's limits of their steps.
func Limited(in component.Inputs, modules ...plan.Module) []plan.Module {
	modules = cloned(modules)
	for i := range modules {
		for j, t := range modules[i].Tasks {
			modules[i].Tasks[j] = task.Limited(in, t)
		}
	}
	return modules
}

// cloned are modules with tasks that may be changed.
func cloned(modules []plan.Module) []plan.Module {
	modules = slices.Clone(modules)
	for i := range modules {
		modules[i].Tasks = slices.Clone(modules[i].Tasks)
	}
	return modules
}

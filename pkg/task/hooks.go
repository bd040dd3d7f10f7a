// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
)

// Before is t with the user's hooks before it.
func Before(in component.Inputs, t plan.Task) plan.Task {
	var before []step.Step
	for _, h := range hooks(in, t.Name, spec.HookBefore) {
		before = append(before, system.Hook(h))
	}
	t.Steps = slices.Concat(before, t.Steps)
	return t
}

// After is t with the user's hooks after it. Who waits for t waits for them, too.
func After(in component.Inputs, t plan.Task) plan.Task {
	t.Steps = slices.Clip(t.Steps)
	for _, h := range hooks(in, t.Name, spec.HookAfter) {
		t.Until = spec.HookStep(h.Name) + "/" + in.Target.Host.Name
		t.Steps = append(t.Steps, system.Hook(h, t.Until))
	}
	return t
}

func hooks(in component.Inputs, task string, when spec.HookTime) []spec.Hook {
	return slices.DeleteFunc(in.Target.Hooks(), func(h spec.Hook) bool { return h.Task != task || h.When != when })
}

// Limited is t with the user's limits of its steps.
func Limited(in component.Inputs, t plan.Task) plan.Task {
	t.Limits = map[string]plan.Limits{}
	for _, s := range t.Steps {
		name := s.Meta().Name
		b := in.Target.Bounds(t.Name, name)
		t.Limits[name] = plan.Limits{
			Timeout:  step.Duration(time.Duration(b.TimeoutSeconds) * time.Second),
			Attempts: int(b.Attempts), Concurrency: int(b.Concurrency), Group: b.Group,
		}
	}
	return t
}

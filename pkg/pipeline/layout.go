// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
)

// layout lays modules, and what users ask for beside them: hooks and limits are for all pipelines, and no task knows of them.
type layout struct{ b *plan.Builder }

func newLayout(intent, cluster string) layout { return layout{plan.New(intent, cluster)} }

// host lays all modules of a host.
func (l layout) host(in module.Inputs, modules ...plan.Module) {
	l.b.Host(in.Target.Host.Name, module.Limited(in, module.Hooked(in, modules...)...)...)
}

// gate lays modules on the controller for a host. One that several hosts ask for has the limits of the first of them.
func (l layout) gate(in module.Inputs, modules ...plan.Module) {
	l.b.Gate(module.Limited(in, modules...)...)
}

func (l layout) plan() (*plan.Plan, error) { return l.b.Plan() }

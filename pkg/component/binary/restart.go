// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Restart restarts components of the control plane, and etcd's member by its steps before them, on one host of the cluster at a time. When
// one does not come back, the turn ends all the same once the API server is ready.
func Restart(c Cluster, n Node, r component.Restart, etcd []step.Step) []step.Step {
	var units, steady = []step.Step(nil), []string(nil)
	for _, one := range []struct {
		name spec.ComponentName
		unit unit
	}{
		{spec.ComponentAPIServer, apiServerUnit(c, n)},
		{spec.ComponentControllerManager, controllerManagerUnit(c)},
		{spec.ComponentScheduler, schedulerUnit(c)},
	} {
		if !r.Has(one.name) {
			continue
		}
		if units = append(units, r.Unit(one.name, one.unit.name())); one.name == spec.ComponentAPIServer {
			units = append(units, isReady(c)) // those who use it come after it
		}
		steady = append(steady, one.unit.name())
	}
	if len(etcd)+len(units) == 0 {
		return nil
	}
	begin := step.New(step.Meta{
		Name: "kubernetes/begin-change", Description: "take the turn of the control plane, to restart components " + r.AsFor(),
		Disrupts: "restarts the control plane's components",
	}, step.Savepoint{
		About: "the restart of its components", Unless: []step.Done{{SameInput: true}}, Dir: changeDir, Turn: component.ControlPlaneTurn,
		Settled: step.Done{Check: askReady(c)},
	})
	steps := append([]step.Step{begin}, etcd...)
	if len(etcd) > 0 && !r.Has(spec.ComponentAPIServer) {
		steps = append(steps, isReady(c)) // it has no other etcd
	}
	return append(append(steps, units...), endChange(steady))
}

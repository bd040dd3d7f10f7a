// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Steady waits until units have been up for a while without a restart: one that does not understand what it was given has ended by then,
// and the step fails with the end of its journal. It comes after the Services that start them, which need not wait for each by itself
// (Settle): as a rule the units have been up for as long when it is asked, and nothing is waited for.
type Steady struct {
	Units []string `json:"units"`
	// For is how long each must have been up.
	For Duration `json:"for"`
	// While, if not "", is a path: nothing is asked of the units while it does not exist.
	While string `json:"while,omitempty"`
}

// Meta names the kind.
func (s Steady) Meta() Meta { return Meta{Name: "steady"} }

// Observe asks for the units.
func (s Steady) Observe() host.Query {
	q := host.Query{Units: slices.Clone(s.Units)}
	if s.While != "" {
		q.Paths = []host.PathQuery{{Path: s.While}}
	}
	return q
}

// Precheck names those that do not run, or do not for long enough.
func (s Steady) Precheck(v View) (Diff, error) {
	if s.While != "" && !v.Facts.Paths[s.While].Exists {
		return nil, nil
	}
	var d Diff
	for _, name := range s.Units {
		have, enough := orNone(v.Facts.Units[name].Active), "up for "+time.Duration(s.For).String()
		switch {
		case have != "active":
			d = append(d, Delta{host.Unit{Name: name}.Key(), have, enough})
		case s.lacks(v, name) > 0:
			d = append(d, Delta{host.Unit{Name: name}.Key(), "up for less", enough})
		}
	}
	return d, nil
}

// lacks is for how much longer a unit that is active must be up.
func (s Steady) lacks(v View, name string) time.Duration {
	up := max(0, v.Facts.Taken.Sub(v.Facts.Units[name].Since))
	return max(0, time.Duration(s.For)-up)
}

// Effect starts those that do not run, and waits.
func (s Steady) Effect(v View) (Effect, error) {
	var all []host.Change
	for _, name := range s.Units {
		wait := time.Duration(s.For)
		if v.Facts.Units[name].Active == "active" {
			wait = s.lacks(v, name)
		}
		if wait > 0 {
			all = append(all, host.Unit{Name: name, Active: "started", Settle: wait})
		}
	}
	return changes(all...), nil
}

// Run waits for them.
func (s Steady) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, s) }

// Rollback stops those that it started.
func (s Steady) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

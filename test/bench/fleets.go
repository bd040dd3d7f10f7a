// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/bench/fleet"
)

const (
	smallFleet, largeFleet = 100, 1000

	// resync is how often a manager has all objects reconciled while that is measured.
	resync = 2 * time.Minute
	// lookEvery is how often it looks at hosts while that is measured, a tenth sooner or later.
	lookEvery = 2 * time.Minute
	// never is after the end of a measurement.
	never = 24 * time.Hour
)

// reconciling measures a manager that finds nothing to do for a hundred Machines.
func reconciling() experiment {
	const floor = "; reference: controllers of the same kinds that watch the same, and get their object from the cache"
	return experiment{
		measurements: []measurement{
			{name: "resync/time", unit: "s", about: "all objects of 100 Machines that are as they are to be are reconciled once, by the clock" + floor},
			{name: "resync/processors", unit: "s", about: "the processor time of that, in the manager's process" + floor},
			{name: "resync/reads", unit: "calls", about: "get and list requests to the API server in it" + floor},
			{name: "resync/writes", unit: "calls", goal: goal{of: "ours", bound: 0}, about: "requests in it that create, change or delete" + floor},
			{name: "resync/exchanges", unit: "exchanges", goal: goal{of: "ours", bound: 0}, about: "with hosts, none of which is due to be observed"},
			{name: "look/exchanges", unit: "exchanges", goal: goal{of: "ours", bound: smallFleet}, about: "with 100 hosts, each of which is observed once and is as planned"},
			{name: "look/processors", unit: "s", about: "the processor time of that, in the manager's process"},
			{name: "look/reads", unit: "calls", about: "get and list requests to the API server in it"},
			{name: "look/writes", unit: "calls", about: "requests in it that create, change or delete"},
		},
		hosts: always(2),
		round: func(ctx context.Context, l *lab, hosts []string, _ int, take note) error {
			return l.withFleet(ctx, hosts, smallFleet, func(s *scenery) error {
				if err := s.record(ctx); err != nil {
					return err
				}
				if err := s.takeOver(ctx, smallFleet); err != nil {
					return err
				}
				return s.rest(ctx, take)
			})
		},
	}
}

// growing measures how much memory a manager has, and what each Machine adds.
func growing() experiment {
	// What is played are the hosts; the Machines are copies of one that has come up: see fleet.Seed.
	const about = "%s of a manager's process that takes over %d Machines on played hosts, as after an update"
	e := experiment{hosts: always(2)}
	for _, machines := range []int{smallFleet, largeFleet} {
		name := fmt.Sprintf("memory/%d-machines", machines)
		e.measurements = append(e.measurements,
			measurement{name: name + "/heap", unit: "MiB", about: fmt.Sprintf(about, "what lives in the heap", machines) +
				", when all hosts are as they are to be; reference: controllers of the same kinds that watch the same and do nothing"},
			measurement{name: name + "/resident", unit: "MiB", about: fmt.Sprintf(about, "the resident memory", machines) +
				", then; the same reference"},
			measurement{name: name + "/peak", unit: "MiB", about: fmt.Sprintf(about, "the most resident memory", machines) +
				", while it converges the hosts, 50 at once"},
		)
	}
	e.measurements = append(e.measurements,
		measurement{name: "memory/machine/heap", unit: "KiB", about: "what a Machine adds to the heap, from 100 to 1000; the same reference"},
		measurement{name: "memory/machine/peak", unit: "KiB", about: "what a Machine adds to the peak, from 100 to 1000"},
	)
	e.round = func(ctx context.Context, l *lab, hosts []string, _ int, take note) error {
		return l.withFleet(ctx, hosts, largeFleet, func(s *scenery) error { return s.grow(ctx, take) })
	}
	return e
}

// record has a manager bring up a control plane and a worker on the recorded hosts.
func (s *scenery) record(ctx context.Context) error {
	s.log("recording a host of the control plane and a worker")
	if err := s.startManager(ctx, fleet.Manager{DriftCheckInterval: never}); err != nil {
		return err
	}
	if err := s.Declare(ctx, s.hosts[0], s.hosts[1]); err != nil {
		return err
	}
	s.machines = 2
	if err := s.Await(ctx, s.machines); err != nil {
		return err
	}
	// What the worker says when it is asked again is to be known, too.
	before, _, err := s.quiet(ctx)
	if err == nil {
		err = s.Again(ctx)
	}
	if err == nil {
		_, err = s.until(ctx, func(c fleet.Cost) bool { return c.Exchanges >= before.Exchanges+2 })
	}
	if err == nil {
		_, _, err = s.quiet(ctx)
	}
	return err
}

// takeOver starts a manager with a fleet of so many Machines, which it did not make, and has it come to rest. It finds those hosts as
// they are to be that an earlier manager has converged, and nothing on the others.
func (s *scenery) takeOver(ctx context.Context, machines int) error {
	if err := s.stopManager(); err != nil {
		return err
	}
	took, err := timed(func() error { return s.Seed(ctx, s.hosts[s.machines:machines]...) })
	if err != nil {
		return err
	}
	s.log("from %d to %d Machines in %.0f s", s.machines, machines, took)
	s.machines = machines
	took, err = timed(func() error {
		if err := s.startManager(ctx, fleet.Manager{DriftCheckInterval: never}); err != nil {
			return err
		}
		if err := s.Await(ctx, machines); err != nil {
			return err
		}
		_, _, err := s.quiet(ctx)
		return err
	})
	if err != nil {
		return err
	}
	s.log("a manager has converged their hosts and rests after %.0f s", took)
	return s.Await(ctx, machines)
}

// rest measures a fleet that has nothing to do.
func (s *scenery) rest(ctx context.Context, take note) error {
	for _, of := range []side{ours, reference} {
		m := fleet.Manager{Resync: resync, DriftCheckInterval: never, Floor: of == reference}
		cost, took, err := s.resync(ctx, m)
		if err != nil {
			return err
		}
		s.told("resync, "+of.String(), cost)
		take("resync/time", of, took.Seconds())
		take("resync/processors", of, cost.Processors.Seconds())
		take("resync/reads", of, float64(cost.CallsOf("get", "list")))
		take("resync/writes", of, float64(cost.CallsOf("create", "update", "patch", "delete")))
		if of == ours {
			take("resync/exchanges", of, float64(cost.Exchanges))
		}
	}
	before, err := s.restart(ctx, fleet.Manager{Resync: never, DriftCheckInterval: lookEvery})
	if err != nil {
		return err
	}
	if _, err := s.until(ctx, func(c fleet.Cost) bool { return c.Exchanges >= before.Exchanges+smallFleet }); err != nil {
		return err
	}
	after, _, err := s.quiet(ctx)
	if err != nil {
		return err
	}
	cost := after.Since(before)
	s.told("looks", cost)
	take("look/exchanges", ours, float64(cost.Exchanges))
	take("look/processors", ours, cost.Processors.Seconds())
	take("look/reads", ours, float64(cost.CallsOf("get", "list")))
	take("look/writes", ours, float64(cost.CallsOf("create", "update", "patch", "delete")))
	return nil
}

// restart has another manager come to rest. It observes each host first.
func (s *scenery) restart(ctx context.Context, m fleet.Manager) (cost fleet.Cost, err error) {
	if err := s.startManager(ctx, m); err != nil {
		return cost, err
	}
	if !m.Floor {
		if _, err := s.until(ctx, func(c fleet.Cost) bool { return c.Exchanges >= smallFleet }); err != nil {
			return cost, err
		}
	}
	cost, _, err = s.quiet(ctx)
	return cost, err
}

// resync measures the second time at which all objects are reconciled: the first is when a manager starts.
func (s *scenery) resync(ctx context.Context, m fleet.Manager) (cost fleet.Cost, took time.Duration, err error) {
	before, err := s.restart(ctx, m)
	if err != nil {
		return cost, 0, err
	}
	var began time.Time
	reconciles, changed := before.Reconciles, time.Time{}
	if _, err = s.until(ctx, func(c fleet.Cost) bool {
		if c.Reconciles != reconciles {
			// A control plane is observed each minute by itself, too: what begins last, after a rest, counts.
			if time.Since(changed) > 2*time.Second {
				began = time.Now()
			}
			reconciles, changed = c.Reconciles, time.Now()
		}
		// Of a Machine at least its KubexmConfig, KubexmMachine and KubexmHost are reconciled.
		return c.Reconciles >= before.Reconciles+3*smallFleet
	}); err != nil {
		return cost, 0, err
	}
	after, ago, err := s.quiet(ctx)
	return after.Since(before), time.Since(began) - ago, err
}

// grow measures memory.
func (s *scenery) grow(ctx context.Context, take note) error {
	if err := s.record(ctx); err != nil {
		return err
	}
	sizes := [2]int{smallFleet, largeFleet}
	var heaps, peaks, floors [2]float64
	for i, machines := range sizes {
		if err := s.takeOver(ctx, machines); err != nil {
			return err
		}
		cost, err := s.manager.cost(fleet.Collect)
		if err != nil {
			return err
		}
		heaps[i], peaks[i] = cost.Heap, cost.Peak
		name := fmt.Sprintf("memory/%d-machines", machines)
		take(name+"/heap", ours, cost.Heap)
		take(name+"/resident", ours, cost.Resident)
		take(name+"/peak", ours, cost.Peak)
		if err := s.startManager(ctx, fleet.Manager{Floor: true}); err != nil {
			return err
		}
		if _, _, err := s.quiet(ctx); err != nil {
			return err
		}
		if cost, err = s.manager.cost(fleet.Collect); err != nil {
			return err
		}
		floors[i] = cost.Heap
		take(name+"/heap", reference, cost.Heap)
		take(name+"/resident", reference, cost.Resident)
	}
	each := func(of [2]float64) float64 { return (of[1] - of[0]) * 1024 / (largeFleet - smallFleet) }
	take("memory/machine/heap", ours, each(heaps))
	take("memory/machine/heap", reference, each(floors))
	take("memory/machine/peak", ours, each(peaks))
	return nil
}

// told logs what calls were made.
func (s *scenery) told(what string, c fleet.Cost) {
	calls := slices.SortedFunc(maps.Keys(c.Calls), func(a, b string) int { return cmp.Or(c.Calls[b]-c.Calls[a], strings.Compare(a, b)) })
	for i, call := range calls {
		calls[i] = fmt.Sprintf("%d %s", c.Calls[call], call)
	}
	s.log("  %s: %.0f reconciles, %d exchanges; %s", what, c.Reconciles, c.Exchanges, strings.Join(calls, ", "))
}

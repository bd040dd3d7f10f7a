// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// measurement is a line of the table.
type measurement struct {
	name, unit string
	goal       goal
	// about says what is measured and what the reference is.
	about string
}

// goal bounds a ratio to the reference, or our own value. The zero goal wants nothing.
type goal struct {
	of    string // "ratio" or "ours"
	least bool   // the bound is the least that is good, else the most
	bound float64
}

func (g goal) String() string {
	switch {
	case g.of == "":
		return ""
	case g.least:
		return fmt.Sprintf("%s >= %g", g.of, g.bound)
	}
	return fmt.Sprintf("%s <= %g", g.of, g.bound)
}

// met judges a result; known is false where there is nothing to judge.
func (g goal) met(r result) (met, known bool) {
	value := r.Ours
	if g.of == "ratio" {
		value = r.Ratio
	}
	if g.of == "" || value == nil {
		return false, false
	}
	if g.least {
		return *value >= g.bound, true
	}
	return *value <= g.bound, true
}

// side says whose value it is.
type side int

const (
	ours side = iota
	reference
)

func (s side) String() string { return [...]string{"ours", "reference"}[s] }

// note takes a value of a measurement.
type note func(name string, of side, value float64)

// experiment takes values for one or more measurements, one of each side in a round.
type experiment struct {
	measurements []measurement
	// hosts is how many real hosts of its own the experiment needs for so many rounds.
	hosts func(rounds int) int
	// round is called once per repetition, counted from 0, with those hosts.
	round func(ctx context.Context, l *lab, hosts []string, round int, take note) error
}

// always is for experiments that use their hosts again in each round.
func always(hosts int) func(int) int { return func(int) int { return hosts } }

func experiments() []experiment {
	return []experiment{
		settings(), sending(), sendingDelayed(), controlPlanes(), sixHosts(), joining(), upgrading(), crowds(), reconciling(), growing(),
	}
}

// measure takes the chosen measurements, prints the table and writes the file.
func measure(ctx context.Context, o options) error {
	var chosen []experiment
	var lines []measurement
	for _, e := range experiments() {
		selected := slices.DeleteFunc(slices.Clone(e.measurements), func(m measurement) bool { return !o.run.MatchString(m.name) })
		if len(selected) > 0 {
			chosen = append(chosen, e)
			lines = append(lines, selected...)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("-run: no measurement is called like %q; -list names them", o.run)
	}
	l, err := openLab(ctx, o, chosen)
	if err != nil {
		return err
	}
	values := map[string]map[side][]float64{}
	loads, err := rounds(ctx, l, chosen, func(name string, of side, value float64) {
		if values[name] == nil {
			values[name] = map[side][]float64{}
		}
		values[name][of] = append(values[name][of], value)
		l.log("  %s, %s: %s", name, of, figure(&value))
	})
	if closed := l.close(context.WithoutCancel(ctx)); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	results := make([]result, len(lines))
	for i, m := range lines {
		results[i] = m.result(values[m.name], loads[m.name])
	}
	printTable(os.Stdout, lines, results)
	content, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(write(o.out, append(content, '\n')), write(strings.TrimSuffix(o.out, ".json")+".txt", asBenchmarks(lines, values)))
}

// rounds takes the experiments one after the other, each from a machine at rest, and returns the load average that each measurement
// began with.
func rounds(ctx context.Context, l *lab, chosen []experiment, take note) (map[string]float64, error) {
	loads := map[string]float64{}
	first := 0
	for _, e := range chosen {
		mine := l.names(first, e.hosts(l.options.repeat))
		first += len(mine)
		began, err := l.rest(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range e.measurements {
			loads[m.name] = began
		}
		for round := range l.options.repeat {
			name := e.measurements[0].name
			l.log("%s …, round %d of %d", name, round+1, l.options.repeat)
			if err := e.round(ctx, l, mine, round, take); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return loads, nil
}

// restful is the load average of a machine that has nothing else to do.
const restful = 1.0

// rest waits until the machine is at rest, as long as the options say, and returns its load average: figures from a busy machine are
// worth little, and the results say so.
func (l *lab) rest(ctx context.Context) (float64, error) {
	now, err := load()
	if err != nil || now <= restful {
		return now, err
	}
	l.log("load average %.1f, waiting up to %s for %.1f", now, l.options.rest, restful)
	err = wait.PollUntilContextTimeout(ctx, time.Second, l.options.rest, true, func(context.Context) (bool, error) {
		now, err = load()
		return now <= restful, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		l.log("load average %.1f still: the results will say so", now)
		err = nil
	}
	return now, err
}

// load is the load average of the last minute.
func load() (float64, error) {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	last, _, _ := strings.Cut(string(content), " ")
	return strconv.ParseFloat(last, 64)
}

// timed is how long f takes, in seconds.
func timed(f func() error) (float64, error) {
	began := time.Now()
	err := f()
	return time.Since(began).Seconds(), err
}

// inTurn runs both, the first one first in even rounds: who comes second finds warmer caches.
func inTurn(round int, first, second func() error) error {
	if round%2 == 1 {
		first, second = second, first
	}
	if err := first(); err != nil {
		return err
	}
	return second()
}

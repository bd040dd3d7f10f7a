// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// A unit that has only just begun is waited for, for what is left of its time, and one that does not run is started.
func TestSteady(t *testing.T) {
	now := time.Now()
	units := map[string]host.UnitState{
		"old.service":    {Active: "active", Since: now.Add(-time.Minute)},
		"new.service":    {Active: "active", Since: now.Add(-time.Second)},
		"ahead.service":  {Active: "active", Since: now.Add(time.Second)}, // by a clock that was set back
		"broken.service": {Active: "activating"},
	}
	for _, tt := range []struct {
		name  string
		units []string
		while string
		diff  []string
		does  []host.Change
	}{
		{name: "it has run for long", units: []string{"old.service"}},
		{
			"it has only just begun", []string{"old.service", "new.service"}, "",
			[]string{"unit new.service: up for less → up for 3s"},
			[]host.Change{host.Unit{Name: "new.service", Active: "started", Settle: 2 * time.Second}},
		},
		{
			"it is started again and again", []string{"broken.service"}, "/under",
			[]string{"unit broken.service: activating → up for 3s"},
			[]host.Change{host.Unit{Name: "broken.service", Active: "started", Settle: 3 * time.Second}},
		},
		{
			"it is not there, or of a time that has yet to come", []string{"none.service", "ahead.service"}, "",
			[]string{"unit none.service: none → up for 3s", "unit ahead.service: up for less → up for 3s"},
			[]host.Change{
				host.Unit{Name: "none.service", Active: "started", Settle: 3 * time.Second},
				host.Unit{Name: "ahead.service", Active: "started", Settle: 3 * time.Second},
			},
		},
		{name: "nothing is asked while a path is not there", units: []string{"broken.service"}, while: "/over"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := step.Steady{Units: tt.units, For: step.Duration(3 * time.Second), While: tt.while}
			v := step.View{Facts: &host.Facts{
				Taken: now, Units: map[string]host.UnitState{}, Paths: map[string]host.Path{"/under": {Exists: true}},
			}}
			q := s.Observe()
			for _, u := range q.Units {
				v.Facts.Units[u] = units[u]
			}
			if asks := len(q.Paths) == 1 && q.Paths[0].Path == tt.while; asks != (tt.while != "") {
				t.Errorf("it asks for %+v", q.Paths)
			}
			diff, err := s.Precheck(v)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, d := range diff {
				lines = append(lines, fmt.Sprintf("%s: %s → %s", d.Subject, d.From, d.To))
			}
			if d := cmp.Diff(tt.diff, lines); d != "" {
				t.Error(d)
			}
			if len(diff) == 0 {
				return
			}
			e, err := s.Effect(v)
			if d := cmp.Diff(tt.does, e.Changes); d != "" || err != nil {
				t.Error(err, d)
			}
		})
	}
}

// What is committed when its units run is not committed before that: the one comes in the act before the other.
func TestSteadyBeforeCommit(t *testing.T) {
	steady := step.Steady{Units: []string{"a.service"}, For: step.Duration(time.Second), While: "/under"}
	s := step.New(step.Meta{Name: "end"}, steady, step.Commit{Dir: "/under"})
	v := step.View{Facts: &host.Facts{Taken: time.Now(), Paths: map[string]host.Path{"/under": {Exists: true}}}}
	e, err := s.Effect(v)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, c := range e.Changes {
		keys = append(keys, c.Key())
	}
	if got := strings.Join(keys, ", "); got != "unit a.service, command commit" {
		t.Errorf("it does %s", got)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// decided is a host of which it is decided again and again what it needs.
type decided struct {
	*foreigner
	s     *scope
	clock *clocktesting.FakePassiveClock
}

func newDecided(t *testing.T, now time.Time) *decided {
	t.Helper()
	d := &decided{foreigner: newForeigner(t), s: testScope(), clock: clocktesting.NewFakePassiveClock(now)}
	d.s.config.UID, d.s.adapter = "1", &adapter{}
	d.restart()
	if err := d.Create(t.Context(), d.s.clusterConfig); err != nil {
		t.Fatal(err)
	}
	return d
}

// restart is another process.
func (d *decided) restart() {
	d.r = &KubexmConfigReconciler{
		Client: d.Client, Reader: d.Client, DriftCheckInterval: time.Hour, Clock: d.clock, Events: events.NewFakeRecorder(20),
		Artifacts: func(context.Context, spec.Artifacts, string) (*artifact.Bundle, error) {
			return &artifact.Bundle{}, nil
		},
	}
}

func (d *decided) job() *job {
	d.Helper()
	j, err := d.r.jobFor(d.Context(), d.s)
	if err != nil {
		d.Fatal(err)
	}
	return j
}

// needs wants the host to need something.
func (d *decided) needs(want action, when string) {
	d.Helper()
	d.s.job = nil
	if goOn, _, err := d.r.decideNeed(d.Context(), d.s); !goOn || err != nil {
		d.Fatal(goOn, err)
	}
	if d.s.needed.act != want {
		d.Errorf("%s, it is to %s, want %s", when, d.s.needed.act, want)
	}
}

// comes has something come of a job.
func (d *decided) comes(what string, out outcome) {
	d.Helper()
	d.s.job = &hostrun.State[outcome]{What: what, Started: d.clock.Now(), Ended: d.clock.Now().Add(time.Second), Result: out}
	if goOn, _, err := d.r.collectResult(d.Context(), d.s); goOn || err != nil || !d.s.ended {
		d.Fatalf("goes on %v: %v", goOn, err)
	}
}

// TestWindowAfterNothingBegan: what was admitted in a maintenance window, and ended before it changed anything, is held outside of it like
// what never was; what was changed in part is finished.
func TestWindowAfterNothingBegan(t *testing.T) {
	saturday := time.Date(2026, 11, 21, 22, 30, 0, 0, time.UTC)
	cut, locked := &engine.Error{Cause: errMaintenance}, &engine.Error{Failures: []engine.Failure{{
		Host: "w1", Err: &host.Error{Kind: host.KindLocked, Host: "w1", Message: "someone works on it"},
	}}}
	for name, tc := range map[string]struct {
		came []outcome // in turn
		want action
	}{
		"a maintenance came first":          {[]outcome{{err: cut}}, weighs},
		"the host was locked":               {[]outcome{{err: locked}}, weighs},
		"no bundle":                         {[]outcome{{err: errors.New("artifacts: no route"), planFailed: true}}, weighs},
		"a maintenance came half way":       {[]outcome{{err: cut, begun: true}}, converges},
		"and then it was locked":            {[]outcome{{err: cut, begun: true}, {err: locked}, {err: cut}}, converges},
		"a step failed half way":            {[]outcome{{err: errors.New("exited 1"), begun: true}}, converges},
		"what failed at last was begun too": {[]outcome{{err: locked}, {err: cut, begun: true}, {err: locked}}, converges},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDecided(t, saturday)
			d.s.config.Spec.Disruption.MaintenanceWindows = []spec.MaintenanceWindow{{Start: "0 22 * * SAT", DurationMinutes: 60}}
			d.s.config.Status.PlanDigest = "sha256:0"
			setFalse(d.s.config, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeNotReadyReason, "it takes no turns")
			input := d.job().input
			seen := &weight{input: input, at: saturday, acts: []act{{Node: "n", Step: "kubelet/service", Disrupts: "restarts kubelet"}}}
			d.r.store("1", hostCache{input: "other", converged: true, weight: seen})
			d.needs(converges, "in the window")
			if due, err := d.r.convergeIsDue(t.Context(), d.s); due == nil || err != nil {
				t.Fatal("nothing is due", err)
			}
			for _, out := range tc.came {
				out.input = input
				d.comes(converging, out)
				d.clock.SetTime(d.clock.Now().Add(10 * time.Minute))
			}
			d.clock.SetTime(saturday.Add(10 * time.Hour))
			m := d.r.cached("1")
			m.ended = time.Time{} // its pause is over
			d.r.store("1", m)
			d.needs(tc.want, "outside of it")
		})
	}
}

// TestRunThatIsTooLate: a run that was admitted, and has its place when the window has closed, touches nothing.
func TestRunThatIsTooLate(t *testing.T) {
	saturday := time.Date(2026, 11, 21, 22, 30, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		begun bool
		after time.Duration
		late  bool
	}{
		"it has its place in time": {after: 10 * time.Minute},
		"it has not":               {after: time.Hour, late: true},
		"it goes on":               {after: time.Hour, begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDecided(t, saturday)
			d.s.config.Spec.Disruption.MaintenanceWindows = []spec.MaintenanceWindow{{Start: "0 22 * * SAT", DurationMinutes: 60}}
			d.s.config.Status.PlanDigest = "sha256:0"
			setFalse(d.s.config, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeNotReadyReason, "it takes no turns")
			setTrue(d.s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.HostConvergedReason, "")
			m := hostCache{weight: &weight{input: d.job().input, at: saturday, acts: []act{{Node: "n", Disrupts: "restarts kubelet"}}}}
			if tc.begun {
				m.begun = d.job().input
			}
			d.r.store("1", m)
			d.needs(converges, "in the window")
			asked := false
			d.s.planned.bundle = func(context.Context) (*artifact.Bundle, error) {
				asked = true
				return nil, errors.New("none")
			}
			due, err := d.r.convergeIsDue(t.Context(), d.s)
			if err != nil {
				t.Fatal(err)
			}
			d.clock.SetTime(saturday.Add(tc.after))
			out := due.Do(t.Context(), nobody)
			if late := errors.Is(out.err, errTooLate); late != tc.late || asked == tc.late || late && !interrupted(out.err) {
				t.Errorf("it ends with %v", out.err)
			}
			if !tc.late {
				return
			}
			d.comes(converging, out)
			d.wantsConverged()
			d.clock.SetTime(saturday.Add(tc.after + time.Second))
			d.needs(weighs, "after the window")
		})
	}
}

// wantsConverged wants it still said of the host that it is what it was.
func (d *decided) wantsConverged() {
	d.Helper()
	if last := d.s.config.Status.Operation(bootstrapv1.ConvergeOperation); last.Outcome != bootstrapv1.RunInterrupted {
		d.Errorf("the run has %s", last.Outcome)
	}
	if !isAsBefore(d.s.config) {
		d.Errorf("nothing was changed, and it says %+v", d.s.config.Status.Conditions)
	}
}

// TestDriftIsReportedAfterAMove: where a move or a backup has lost the status of a host whose drift is only reported, what differs there is
// drift as before; what is declared anew, or was asked for meanwhile, is run.
func TestDriftIsReportedAfterAMove(t *testing.T) {
	const asks = bootstrapv1.ConvergeAnnotation
	for name, tc := range map[string]struct {
		meanwhile func(*scope)
		want      action
	}{
		"nothing else has changed":     {func(*scope) {}, look},
		"it has another address":       {func(s *scope) { s.host.Address = "10.1.0.9" }, look},
		"something else is declared":   {func(s *scope) { s.machine.Spec.Version = "v1.36.4" }, weighs},
		"somebody asks":                {func(s *scope) { s.config.Annotations[asks] = "2026-11-22" }, weighs},
		"it is to be repaired":         {func(s *scope) { s.config.Spec.DriftPolicy = spec.DriftRepair }, weighs},
		"a run had begun":              {func(s *scope) { delete(s.config.Annotations, bootstrapv1.ConvergedToAnnotation) }, weighs},
		"its status says that it runs": {func(s *scope) { s.config.Status.OperationFor(bootstrapv1.ConvergeOperation).StartTime = metav1.Now() }, converges},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDecided(t, time.Now())
			config := d.s.config
			config.Spec.DriftPolicy, config.Annotations = spec.DriftReport, map[string]string{asks: "2026-11-21"}
			d.needs(weighs, "at first")
			d.r.store("1", hostCache{input: d.job().input, converged: true, ended: d.clock.Now()})
			d.needs(rest, "converged")
			config.Status = bootstrapv1.KubexmConfigStatus{}
			tc.meanwhile(d.s)
			d.restart()
			d.needs(tc.want, "after the move")
			if tc.want != look {
				return
			}
			if config.Status.MembersDigest != "" {
				t.Error("others go by what nobody has seen")
			}
			d.comes(looking, outcome{input: d.job().input, err: &engine.Error{Cause: errPaused}, system: &host.System{}})
			d.needs(look, "when that was cut")
		})
	}
}

// TestConvergedToIsRecorded for as long as the host is that, and its drift is only reported.
func TestConvergedToIsRecorded(t *testing.T) {
	d := newDecided(t, time.Now())
	recorded := func() string { return d.s.config.Annotations[bootstrapv1.ConvergedToAnnotation] }
	d.r.store("1", hostCache{input: d.job().input, converged: true, ended: d.clock.Now()})
	d.needs(rest, "repaired")
	if recorded() != "" {
		t.Error("it is recorded of a host whose drift is repaired")
	}
	d.s.config.Spec.DriftPolicy = spec.DriftReport
	d.needs(rest, "reported")
	first := recorded()
	if first == "" {
		t.Fatal("it is not recorded")
	}
	d.needs(rest, "again")
	if recorded() != first {
		t.Error("it is written again")
	}
	d.s.job = &hostrun.State[outcome]{What: converging, Started: d.clock.Now()}
	d.r.converge().show(d.s)
	if recorded() != "" {
		t.Error("a run goes on, and it is recorded still")
	}
	d.needs(rest, "afterwards")
	d.comes(converging, outcome{input: d.job().input, err: &engine.Error{Cause: errPaused}, begun: true})
	if recorded() != "" {
		t.Error("a run has begun, and it is recorded still")
	}
}

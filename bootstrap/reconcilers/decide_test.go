// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tc := range map[string]struct {
		cache hostCache
		want  need
	}{
		"a host that nothing is known of is run": {hostCache{}, need{act: converges}},
		"a converged host rests": {hostCache{input: "a", ended: ago(time.Minute), converged: true},
			need{act: rest, after: 9 * time.Minute}},
		"a converged host is observed after a while":     {hostCache{input: "a", ended: ago(10 * time.Minute), converged: true}, need{act: look}},
		"a host that is to become something else is run": {hostCache{input: "b", ended: ago(time.Second), converged: true}, need{act: converges}},
		"a host that was found changed is run":           {hostCache{input: "a", ended: ago(time.Second), converged: true, drifted: true}, need{act: converges}},
		"a failure is not repeated at once":              {hostCache{input: "a", ended: ago(time.Second), failures: 1}, need{act: rest, after: 4 * time.Second}},
		"failures in a row wait longer":                  {hostCache{input: "a", ended: ago(time.Second), failures: 3}, need{act: rest, after: 19 * time.Second}},
		"no failure waits for ever":                      {hostCache{input: "a", ended: ago(time.Minute), failures: 1000}, need{act: rest, after: 4 * time.Minute}},
		"after the wait it is run again":                 {hostCache{input: "a", ended: ago(5 * time.Second), failures: 1}, need{act: converges}},
		"a change of the input does not wait":            {hostCache{input: "b", ended: ago(time.Second), failures: 9}, need{act: converges}},
		"one that was rolled back twice is run again":    {hostCache{input: "a", ended: ago(time.Hour), failures: 2, restored: 2}, need{act: converges}},
		"one that was rolled back three times is not":    {hostCache{input: "a", ended: ago(time.Hour), failures: 3, restored: 3}, need{act: rest, after: lastBackoff}},
		"somebody else's host waits long": {hostCache{input: "a", ended: ago(time.Minute), failures: 1, foreign: true},
			need{act: rest, after: 4 * time.Minute}},
		"and is tried then":                        {hostCache{input: "a", ended: ago(5 * time.Minute), failures: 1, foreign: true}, need{act: converges}},
		"or when it is not to be adopted any more": {hostCache{input: "a", ended: ago(time.Second), failures: 1, foreign: true, adopts: "x"}, need{act: converges}},
		"but for something else":                   {hostCache{input: "b", ended: ago(time.Second), failures: 3, restored: 3}, need{act: converges}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.cache.decide("a", "", now, 10*time.Minute, spec.DriftRepair); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// What a host was brought to is said of the declaration that it was brought to, and of no later one.
func TestIs(t *testing.T) {
	for name, tc := range map[string]struct {
		cache hostCache
		want  bool
	}{
		"converged":           {hostCache{input: "a", converged: true}, true},
		"converged otherwise": {hostCache{input: "b", converged: true}, false},
		"found changed":       {hostCache{input: "a", converged: true, drifted: true}, false},
		"failed":              {hostCache{input: "a", failures: 1}, false},
		"not known":           {hostCache{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.cache.is("a"); got != tc.want {
				t.Errorf("%v, not %v", got, tc.want)
			}
		})
	}
}

// brought is the status of a host that was brought to an input.
func brought(input string) *bootstrapv1.KubexmConfigStatus {
	s := &bootstrapv1.KubexmConfigStatus{}
	s.SetOperation(bootstrapv1.OperationStatus{Type: bootstrapv1.ConvergeOperation, Outcome: bootstrapv1.RunSucceeded, InputDigest: input})
	return s
}

// TestDriftIsReported: what somebody changed on a host whose drift is only to be reported stays, also after the process has died; what is
// declared anew, or asked for, is run.
func TestDriftIsReported(t *testing.T) {
	now := time.Now()
	drifted := hostCache{input: "a", converged: true, drifted: true, ended: now.Add(-time.Minute)}
	for name, tc := range map[string]struct {
		of    hostCache
		input string
		drift spec.DriftPolicy
		want  need
	}{
		"it is repaired": {drifted, "a", spec.DriftRepair, need{act: converges}},
		"it is left":     {drifted, "a", spec.DriftReport, need{act: rest, after: 9 * time.Minute}},
		"and observed again": {hostCache{input: "a", converged: true, drifted: true, ended: now.Add(-time.Hour)},
			"a", spec.DriftReport, need{act: look}},
		"something else is declared":          {drifted, "b", spec.DriftReport, need{act: converges}},
		"an old process has brought it there": {fromStatus(brought("a"), "a", spec.DriftReport), "a", spec.DriftReport, need{act: look}},
		"to something else":                   {fromStatus(brought("b"), "a", spec.DriftReport), "a", spec.DriftReport, need{act: converges}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.decide(tc.input, "", now, 10*time.Minute, tc.drift); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestLearnOnce: what a run came to counts once, also where it is taken in again because the status could not be written.
func TestLearnOnce(t *testing.T) {
	m, ended := hostCache{}, time.Now()
	out := outcome{input: "a", err: errors.New("no")}
	if !m.recordOutcome(&out, ended) || m.recordOutcome(&out, ended) || m.failures != 1 {
		t.Errorf("one failure counts as %d", m.failures)
	}
	if !m.recordOutcome(&out, ended.Add(time.Second)) || m.failures != 2 {
		t.Errorf("two failures count as %d", m.failures)
	}
}

func TestLearn(t *testing.T) {
	failed := errors.New("no")
	stopped := &engine.Error{Intent: "JoinWorker", Cause: context.Canceled}
	seen := &host.System{Hostname: "node1"}
	putBack := engine.Report{Hosts: []engine.HostReport{{Host: "node1", Restored: 7}}}
	for name, tc := range map[string]struct {
		before hostCache
		out    outcome
		want   hostCache
	}{
		"success forgets failures": {hostCache{input: "a", failures: 3}, outcome{input: "a"}, hostCache{input: "a", converged: true}},
		"failures are counted": {hostCache{input: "a", failures: 3},
			outcome{input: "a", err: failed}, hostCache{input: "a", failures: 4}},
		"failures for another input are counted anew": {hostCache{input: "a", failures: 3}, outcome{input: "b", err: failed}, hostCache{input: "b", failures: 1}},
		"success repairs what had drifted":            {hostCache{input: "a", drifted: true}, outcome{input: "a"}, hostCache{input: "a", converged: true}},
		"a host that was rolled back has nothing begun": {hostCache{input: "a", begun: "a", failures: 1},
			outcome{input: "a", err: failed, report: putBack}, hostCache{input: "a", failures: 2, restored: 1}},
		"what failed half way is to be gone on with": {hostCache{input: "a", begun: "a"}, outcome{input: "a", err: failed}, hostCache{input: "a", begun: "a", failures: 1}},
		"what was rolled back for another input is over": {hostCache{input: "a", failures: 3, restored: 3},
			outcome{input: "b", err: failed, report: putBack}, hostCache{input: "b", failures: 1, restored: 1}},
		"success ends all of it": {hostCache{input: "a", begun: "a", failures: 2, restored: 2},
			outcome{input: "a"}, hostCache{input: "a", converged: true}},
		"what was changed is to be gone on with, though it was stopped": {hostCache{input: "b", begun: "b"},
			outcome{input: "a", err: stopped, begun: true}, hostCache{input: "b", begun: "a"}},
		"what was changed by success is not": {hostCache{}, outcome{input: "a", begun: true}, hostCache{input: "a", converged: true}},
		"what was stopped says nothing but facts": {hostCache{input: "a", failures: 3},
			outcome{input: "b", err: stopped, system: seen}, hostCache{input: "a", failures: 3, system: seen}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.before
			got.recordOutcome(&tc.out, time.Time{})
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestRecall(t *testing.T) {
	ended := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	last := bootstrapv1.OperationStatus{
		Type: bootstrapv1.ConvergeOperation, EndTime: ended, Outcome: bootstrapv1.RunFailed, Failures: ptr.To[int32](2),
	}
	of := func(o bootstrapv1.OperationStatus) *bootstrapv1.KubexmConfigStatus {
		return &bootstrapv1.KubexmConfigStatus{Operations: []bootstrapv1.OperationStatus{o}}
	}
	if got, want := fromStatus(of(last), "a", spec.DriftRepair), (hostCache{input: "a", ended: ended.Time, failures: 2}); got != want {
		t.Errorf("got %+v, want %+v: a manager that starts must not run at once what has just failed", got, want)
	}
	restored := last
	restored.Failures, restored.Restored, restored.InputDigest = ptr.To[int32](3), ptr.To[int32](3), "a"
	if got := fromStatus(of(restored), "a", spec.DriftRepair); !got.exhausted() {
		t.Errorf("got %+v: a manager that starts must not drain a host for what has failed three times", got)
	}
	if got := fromStatus(of(restored), "b", spec.DriftRepair); got != (hostCache{}) {
		t.Errorf("got %+v: what has failed is not held against something else", got)
	}
	for _, cut := range []bootstrapv1.RunOutcome{"", bootstrapv1.RunInterrupted} {
		going := restored
		going.Outcome, going.EndTime, going.Failures, going.Restored = cut, metav1.Time{}, ptr.To[int32](2), ptr.To[int32](2)
		if got, want := fromStatus(of(going), "a", spec.DriftRepair), (hostCache{input: "a", failures: 2, restored: 2}); got != want {
			t.Errorf("%q: got %+v, want %+v: a run that was cut has not made good what those before it came to", cut, got, want)
		}
		if got := fromStatus(of(going), "b", spec.DriftRepair); got != (hostCache{}) {
			t.Errorf("%q: got %+v: what has failed is not held against something else", cut, got)
		}
		going.Failures, going.Restored = ptr.To[int32](0), ptr.To[int32](0)
		if got := fromStatus(of(going), "a", spec.DriftRepair); got != (hostCache{}) {
			t.Errorf("%q: got %+v: nothing has failed", cut, got)
		}
	}
	succeeded := last
	succeeded.Outcome = bootstrapv1.RunSucceeded
	if got := fromStatus(of(succeeded), "a", spec.DriftRepair); got != (hostCache{}) {
		t.Errorf("got %+v: what another process saw of a host is not known to be so still", got)
	}
}

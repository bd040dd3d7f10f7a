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
		memory memory
		want   decision
	}{
		"a host that nothing is known of is run":         {memory{}, decision{act: run}},
		"a converged host rests":                         {memory{input: "a", ended: ago(time.Minute), converged: true}, decision{act: rest, after: 9 * time.Minute}},
		"a converged host is looked at after a while":    {memory{input: "a", ended: ago(10 * time.Minute), converged: true}, decision{act: look}},
		"a host that is to become something else is run": {memory{input: "b", ended: ago(time.Second), converged: true}, decision{act: run}},
		"a host that was found changed is run":           {memory{input: "a", ended: ago(time.Second), converged: true, drifted: true}, decision{act: run}},
		"a failure is not repeated at once":              {memory{input: "a", ended: ago(time.Second), failures: 1}, decision{act: rest, after: 4 * time.Second}},
		"failures in a row wait longer":                  {memory{input: "a", ended: ago(time.Second), failures: 3}, decision{act: rest, after: 19 * time.Second}},
		"no failure waits for ever":                      {memory{input: "a", ended: ago(time.Minute), failures: 1000}, decision{act: rest, after: 4 * time.Minute}},
		"after the wait it is run again":                 {memory{input: "a", ended: ago(5 * time.Second), failures: 1}, decision{act: run}},
		"a change of the input does not wait":            {memory{input: "b", ended: ago(time.Second), failures: 9}, decision{act: run}},
		"a host that was put back twice is tried again":  {memory{input: "a", ended: ago(time.Hour), failures: 2, restored: 2}, decision{act: run}},
		"one that was put back three times is not":       {memory{input: "a", ended: ago(time.Hour), failures: 3, restored: 3}, decision{act: rest, after: lastBackoff}},
		"somebody else's host waits long":                {memory{input: "a", ended: ago(time.Minute), failures: 1, foreign: true}, decision{act: rest, after: 4 * time.Minute}},
		"and is tried then":                              {memory{input: "a", ended: ago(5 * time.Minute), failures: 1, foreign: true}, decision{act: run}},
		"or when it is not to be adopted any more":       {memory{input: "a", ended: ago(time.Second), failures: 1, foreign: true, adopts: "x"}, decision{act: run}},
		"but for something else":                         {memory{input: "b", ended: ago(time.Second), failures: 3, restored: 3}, decision{act: run}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.memory.decide("a", "", now, 10*time.Minute, spec.DriftRepair); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// What a host was brought to is said of the declaration that it was brought to, and of no later one.
func TestIs(t *testing.T) {
	for name, tc := range map[string]struct {
		memory memory
		want   bool
	}{
		"converged":           {memory{input: "a", converged: true}, true},
		"converged otherwise": {memory{input: "b", converged: true}, false},
		"found changed":       {memory{input: "a", converged: true, drifted: true}, false},
		"failed":              {memory{input: "a", failures: 1}, false},
		"not known":           {memory{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.memory.is("a"); got != tc.want {
				t.Errorf("%v, not %v", got, tc.want)
			}
		})
	}
}

// TestDriftIsReported: what somebody changed on a host whose drift is only to be reported stays, also after the process has died; what is
// declared anew, or asked for, is run.
func TestDriftIsReported(t *testing.T) {
	now := time.Now()
	drifted := memory{input: "a", converged: true, drifted: true, ended: now.Add(-time.Minute)}
	for name, tc := range map[string]struct {
		of    memory
		input string
		drift spec.DriftPolicy
		want  decision
	}{
		"it is repaired":                      {drifted, "a", spec.DriftRepair, decision{act: run}},
		"it is left":                          {drifted, "a", spec.DriftReport, decision{act: rest, after: 9 * time.Minute}},
		"and looked at again":                 {memory{input: "a", converged: true, drifted: true, ended: now.Add(-time.Hour)}, "a", spec.DriftReport, decision{act: look}},
		"something else is declared":          {drifted, "b", spec.DriftReport, decision{act: run}},
		"an old process has brought it there": {recall(&bootstrapv1.KubexmConfigStatus{LastRun: bootstrapv1.RunStatus{Outcome: bootstrapv1.RunSucceeded, InputDigest: "a"}}, "a", spec.DriftReport), "a", spec.DriftReport, decision{act: look}},
		"to something else":                   {recall(&bootstrapv1.KubexmConfigStatus{LastRun: bootstrapv1.RunStatus{Outcome: bootstrapv1.RunSucceeded, InputDigest: "b"}}, "a", spec.DriftReport), "a", spec.DriftReport, decision{act: run}},
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
	m, ended := memory{}, time.Now()
	out := outcome{input: "a", err: errors.New("no")}
	if !m.learn(&out, ended) || m.learn(&out, ended) || m.failures != 1 {
		t.Errorf("one failure counts as %d", m.failures)
	}
	if !m.learn(&out, ended.Add(time.Second)) || m.failures != 2 {
		t.Errorf("two failures count as %d", m.failures)
	}
}

func TestLearn(t *testing.T) {
	failed := errors.New("no")
	stopped := &engine.Error{Intent: "JoinWorker", Cause: context.Canceled}
	seen := &host.System{Hostname: "node1"}
	putBack := engine.Report{Hosts: []engine.HostReport{{Host: "node1", Restored: 7}}}
	for name, tc := range map[string]struct {
		before memory
		out    outcome
		want   memory
	}{
		"success forgets failures":                    {memory{input: "a", failures: 3}, outcome{input: "a"}, memory{input: "a", converged: true}},
		"failures are counted":                        {memory{input: "a", failures: 3}, outcome{input: "a", err: failed}, memory{input: "a", failures: 4}},
		"failures for another input are counted anew": {memory{input: "a", failures: 3}, outcome{input: "b", err: failed}, memory{input: "b", failures: 1}},
		"success repairs what had drifted":            {memory{input: "a", drifted: true}, outcome{input: "a"}, memory{input: "a", converged: true}},
		"a host that was put back has nothing begun":  {memory{input: "a", begun: "a", failures: 1}, outcome{input: "a", err: failed, report: putBack}, memory{input: "a", failures: 2, restored: 1}},
		"what failed half way is to be gone on with":  {memory{input: "a", begun: "a"}, outcome{input: "a", err: failed}, memory{input: "a", begun: "a", failures: 1}},
		"what was put back for another input is over": {memory{input: "a", failures: 3, restored: 3}, outcome{input: "b", err: failed, report: putBack}, memory{input: "b", failures: 1, restored: 1}},
		"success ends all of it":                      {memory{input: "a", begun: "a", failures: 2, restored: 2}, outcome{input: "a"}, memory{input: "a", converged: true}},
		"what was stopped says nothing but facts":     {memory{input: "a", failures: 3}, outcome{input: "b", err: stopped, system: seen}, memory{input: "a", failures: 3, system: seen}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.before
			got.learn(&tc.out, time.Time{})
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestRecall(t *testing.T) {
	ended := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	failed := bootstrapv1.KubexmConfigStatus{LastRun: bootstrapv1.RunStatus{
		EndTime: ended, Outcome: bootstrapv1.RunFailed, Failures: ptr.To[int32](2),
	}}
	if got, want := recall(&failed, "a", spec.DriftRepair), (memory{input: "a", ended: ended.Time, failures: 2}); got != want {
		t.Errorf("got %+v, want %+v: a manager that starts must not run at once what has just failed", got, want)
	}
	restored := failed
	restored.LastRun.Failures, restored.LastRun.Restored, restored.LastRun.InputDigest = ptr.To[int32](3), ptr.To[int32](3), "a"
	if got := recall(&restored, "a", spec.DriftRepair); !got.exhausted() {
		t.Errorf("got %+v: a manager that starts must not drain a host for what has failed three times", got)
	}
	if got := recall(&restored, "b", spec.DriftRepair); got != (memory{}) {
		t.Errorf("got %+v: what has failed is not held against something else", got)
	}
	succeeded := failed
	succeeded.LastRun.Outcome = bootstrapv1.RunSucceeded
	if got := recall(&succeeded, "a", spec.DriftRepair); got != (memory{}) {
		t.Errorf("got %+v: what another process saw of a host is not known to be so still", got)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// slowHost has a step whose check is stopped while slow is set, and counts how often the step is run.
type slowHost struct {
	*fake.Machine
	r    *KubexmConfigReconciler
	s    *scope
	slow bool
	runs int
}

func newSlowHost(t *testing.T) *slowHost {
	t.Helper()
	h := &slowHost{Machine: fake.New("w1"), s: testScope()}
	h.r = &KubexmConfigReconciler{Events: events.NewFakeRecorder(10), Clock: clock.RealClock{}, DriftCheckInterval: 10 * time.Minute}
	h.s.adapter = &adapter{}
	h.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
		switch {
		case c.Argv[0] == "save":
			h.runs++
		case c.Argv[0] == "is-saved" && h.slow:
			return host.Result{ExitCode: 124, Stopped: c.Timeout}
		}
		return host.Result{}
	}
	return h
}

func (h *slowHost) job() *job {
	return &job{
		input: "a", remembered: &h.System,
		bundle: func(context.Context) (*artifact.Bundle, error) { return &artifact.Bundle{}, nil },
		target: spec.Target{
			ClusterName: "prod", KubernetesVersion: "v1.36.3", Host: spec.Host{Name: "w1", Role: spec.RoleWorker, Address: "10.1.0.2"},
		},
		planner: func(pipeline.Node, *artifact.Bundle) (*plan.Plan, error) {
			b := plan.New("JoinWorker", "prod")
			b.Host("w1", plan.Module{Name: "etcd", Tasks: []plan.Task{{Name: "t", Steps: []step.Step{
				step.New(step.Meta{Name: "os/file"}, step.File{Path: "/etc/a", Mode: 0o644, Content: step.Literal("a")}),
				step.New(step.Meta{Name: "etcd/snapshot", Disrupts: "pauses etcd"}, step.Command{
					Title: "save a snapshot", Argv: []string{"save"}, Done: step.Done{Check: []string{"is-saved"}},
				}),
			}}}})
			return b.Plan()
		},
		options: engine.Options{
			Dial:   func(context.Context, string) (host.Host, error) { return h.Connect(), nil },
			Holder: "test", Reader: nobody,
		},
	}
}

// takes has the reconciler take in what a job came to that ended at a time, and returns what it remembers then.
func (h *slowHost) takes(t *testing.T, what string, ended time.Time) hostCache {
	t.Helper()
	h.s.job = &hostrun.State[outcome]{What: what, Started: ended.Add(-time.Second), Ended: ended, Result: h.job().look(t.Context(), nobody)}
	for range 2 { // the status could not be written at first
		h.s.ended = false
		if goOn, _, err := h.r.collectResult(t.Context(), h.s); err != nil || goOn || !h.s.ended {
			t.Fatalf("%s: goes on %v, is taken in %v: %v", what, goOn, h.s.ended, err)
		}
	}
	return h.r.cached(h.s.config.UID)
}

func (h *slowHost) says(t *testing.T, kind string, status metav1.ConditionStatus, reason string, want ...string) {
	t.Helper()
	c := conditions.Get(h.s.config, kind)
	if c == nil || c.Status != status || c.Reason != reason {
		t.Fatalf("%s is %+v, want %s %s", kind, c, status, reason)
	}
	for _, text := range want {
		if !strings.Contains(c.Message, text) {
			t.Errorf("%s does not say %q: %s", kind, text, c.Message)
		}
	}
}

// TestSlowHostHasNotDrifted: a look whose check was stopped at its deadline has failed. The host is not said to have drifted, nothing is
// run, and it is observed again, at first soon.
func TestSlowHostHasNotDrifted(t *testing.T) {
	h := newSlowHost(t)
	if out := h.job().converge(t.Context(), nobody); out.err != nil {
		t.Fatal(out.err)
	}
	start := time.Now()
	h.r.store(h.s.config.UID, hostCache{input: "a", converged: true, ended: start})
	setTrue(h.s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.HostConvergedReason, "")
	next := func(m hostCache, after time.Duration, drift spec.DriftPolicy) need {
		return m.decide("a", "", m.ended.Add(after), 10*time.Minute, drift)
	}

	h.slow = true
	for i, wait := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
		m := h.takes(t, looking, start.Add(time.Duration(i+1)*time.Minute))
		h.says(t, bootstrapv1.HostConvergedCondition, metav1.ConditionUnknown, bootstrapv1.ObservationFailedReason,
			"host w1", "step etcd/snapshot", `"is-saved"`, "10s", "Remedy: ", "observed again in "+wait.String())
		h.says(t, bootstrapv1.HostReachableCondition, metav1.ConditionTrue, bootstrapv1.HostReachableReason)
		now, then := next(m, 0, spec.DriftRepair), next(m, wait, spec.DriftRepair)
		if !m.is("a") || now != (need{act: rest, after: wait}) || then != (need{act: look}) {
			t.Errorf("look %d: %+v, then %+v", i, now, then)
		}
	}
	if h.s.config.Status.Operation(bootstrapv1.ConvergeOperation).Outcome != "" {
		t.Errorf("it says that a run %s", h.s.config.Status.Operation(bootstrapv1.ConvergeOperation).Outcome)
	}

	// What is found changed all the same is drift. It is repaired as far as it can be told.
	h.Put("/etc/a", "other", 0o644)
	m := h.takes(t, looking, start.Add(time.Hour))
	h.says(t, bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, bootstrapv1.DriftedReason, "file /etc/a", "is-saved")
	if got := next(m, 0, spec.DriftRepair); got.act != converges {
		t.Errorf("drift: %+v", got)
	}
	if got := next(m, 0, spec.DriftReport); got.act != rest {
		t.Errorf("drift that is reported: %+v", got)
	}
	ran := h.runs
	out := h.job().converge(t.Context(), nobody)
	if host.KindOf(out.err) != host.KindUndecided || h.runs != ran || out.report.Total().Changed != 1 {
		t.Errorf("the repair has changed %d steps, and saved %d snapshots: %v", out.report.Total().Changed, h.runs-ran, out.err)
	}

	h.slow = false
	m = h.takes(t, looking, start.Add(2*time.Hour))
	h.says(t, bootstrapv1.HostConvergedCondition, metav1.ConditionTrue, bootstrapv1.HostConvergedReason)
	if !m.is("a") || m.unsure != 0 {
		t.Errorf("it is well again, and remembered as %+v", m)
	}
}

// TestSlowHostIsNotWeighed: as long as it is not known what a run would disrupt, it does not begin. The host is what it was.
func TestSlowHostIsNotWeighed(t *testing.T) {
	h := newSlowHost(t)
	if out := h.job().converge(t.Context(), nobody); out.err != nil {
		t.Fatal(out.err)
	}
	setTrue(h.s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.HostConvergedReason, "")
	h.r.store(h.s.config.UID, hostCache{input: "before", converged: true})
	h.Put("/etc/a", "as declared before", 0o644)
	h.slow = true
	now := time.Now()
	m := h.takes(t, weighing, now)
	h.says(t, bootstrapv1.DisruptionAllowedCondition, metav1.ConditionFalse, bootstrapv1.ObservationFailedReason, "is-saved", "again in 5s")
	h.says(t, bootstrapv1.HostConvergedCondition, metav1.ConditionTrue, bootstrapv1.HostConvergedReason)
	restricted := restriction{policy: &spec.Disruption{Approval: spec.ApprovalRequired}, installed: true}
	got := m.decide("a", "", now, 10*time.Minute, spec.DriftRepair)
	if got != (need{act: rest, after: 5 * time.Second}) || !m.unweighed() {
		t.Errorf("at once: %+v", got)
	}
	if got, _ := m.admit(restricted, "a", now.Add(5*time.Second), 10*time.Minute); got.act != weighs {
		t.Errorf("then: %+v", got)
	}
	h.slow = false
	if m = h.takes(t, weighing, now.Add(time.Minute)); m.weight == nil || len(m.weight.acts) != 0 || m.unweighed() {
		t.Errorf("when it can be told: %+v", m)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestRestart restarts what a worker has of what is asked for, once for each time at which that is, and says why where it cannot.
func TestRestart(t *testing.T) {
	m := fake.New("w1")
	for _, unit := range []string{"containerd.service", "kubelet.service"} {
		m.SetUnit(unit, host.UnitState{Load: "loaded", Active: "active", File: "enabled"})
	}
	var changed []string
	options := engine.Options{
		Dial:   func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
		Holder: "test", Reader: event.ReaderFunc(func(e event.Event) {
			if e.Type == event.Changed {
				changed = append(changed, e.Step)
			}
		}),
	}
	target := saver()
	target.Host = spec.Host{Name: "w1", Role: spec.RoleWorker, Address: "10.1.0.9"}
	first := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		what       string
		asked      time.Time
		components []spec.ComponentName
		want, err  string
	}{
		{"asked for", first, []spec.ComponentName{spec.ComponentKubelet, spec.ComponentEtcd}, "restart/request restart/kubelet", ""},
		{"asked for once", first, []spec.ComponentName{spec.ComponentKubelet, spec.ComponentEtcd}, "", ""},
		{"asked for again", first.Add(time.Minute), []spec.ComponentName{spec.ComponentKubelet}, "restart/request restart/kubelet", ""},
		{"another", first.Add(time.Minute), []spec.ComponentName{spec.ComponentRuntime}, "restart/request restart/containerd", ""},
		{"of others", first, []spec.ComponentName{spec.ComponentEtcd}, "", "there is no Etcd to restart: w1 has ContainerRuntime,Kubelet"},
		{"of nobody", first, []spec.ComponentName{spec.ComponentLoadBalancer}, "", "has no LoadBalancer that can be restarted on its hosts; it has "},
	} {
		changed = nil
		out := restartComponents(t.Context(), options, target, pipeline.Restart{Components: tc.components, Asked: tc.asked})
		if got := strings.Join(changed, " "); got != tc.want || !out.asked.Equal(tc.asked) || (tc.err == "") != (out.err == nil) {
			t.Errorf("%s: it changes %q, want %q: %v", tc.what, got, tc.want, out.err)
		}
		if tc.err != "" && (out.err == nil || !strings.Contains(out.err.Error(), tc.err)) {
			t.Errorf("%s: it says %v", tc.what, out.err)
		}
	}
}

// TestRestartIsDue: once for each request, of a host that was what it must be once; what is no request is said, or fails.
func TestRestartIsDue(t *testing.T) {
	for name, tc := range map[string]struct {
		value     string
		converged int64
		done      string
		due       bool
		says, err string
	}{
		"nobody asks":         {converged: 1},
		"asked for":           {value: "2026-11-23T12:00:00Z Kubelet,etcd", converged: 1, due: true},
		"by an object":        {value: "2026-11-23T12:00:00Z Kubelet KubexmOperation/x", converged: 1, due: true},
		"done":                {value: "2026-11-23T12:00:00Z Kubelet", converged: 1, done: "2026-11-23T12:00:00Z"},
		"another time":        {value: "2026-11-23T12:00:01Z Kubelet", converged: 1, done: "2026-11-23T12:00:00Z", due: true},
		"a host that is new":  {value: "2026-11-23T12:00:00Z Kubelet"},
		"no time":             {value: "Kubelet", converged: 1, says: "want a time and components"},
		"no component":        {value: "2026-11-23T12:00:00Z", converged: 1, due: true, err: "names no component"},
		"no such component":   {value: "2026-11-23T12:00:00Z kube-proxy", converged: 1, due: true, err: "there is no component \"kube-proxy\""},
		"an object, and none": {value: "2026-11-23T12:00:00Z KubexmOperation/x", converged: 1, due: true, err: "there is no component"},
	} {
		t.Run(name, func(t *testing.T) {
			said := events.NewFakeRecorder(9)
			r, s := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second), Events: said}, testScope()
			s.planned = &job{}
			s.config.Status.ConvergedGeneration = tc.converged
			if tc.value != "" {
				s.config.Annotations = map[string]string{bootstrapv1.RestartAnnotation: tc.value}
			}
			if tc.done != "" {
				at, err := time.Parse(time.RFC3339, tc.done)
				if err != nil {
					t.Fatal(err)
				}
				s.config.Status.OperationFor(bootstrapv1.RestartOperation).RequestTime.Time = at
			}
			due, err := r.restartIsDue(t.Context(), s)
			if err != nil || (due != nil) != tc.due {
				t.Fatalf("due %v, %v", due != nil, err)
			}
			if tc.says != "" && !strings.Contains(<-said.Events, tc.says) {
				t.Error("there is no event")
			}
			if tc.err != "" {
				if out := due.Do(t.Context(), nobody); out.err == nil || !strings.Contains(out.err.Error(), tc.err) || out.asked.IsZero() {
					t.Errorf("it says %v", out.err)
				}
			}
		})
	}
}

// TestRestartResult keeps what was restarted, or why it was not, and what was interrupted is not done.
func TestRestartResult(t *testing.T) {
	asked := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		out   outcome
		want  bootstrapv1.RunOutcome
		says  string
		event string
	}{
		"restarted":   {outcome{asked: asked, note: "Kubelet,Etcd restarted"}, bootstrapv1.RunSucceeded, "Kubelet,Etcd restarted, and well after 1.5s", "Normal ComponentsRestarted"},
		"failed":      {outcome{asked: asked, err: errors.New("it does not start")}, bootstrapv1.RunFailed, "it does not start", "Warning RestartFailed"},
		"interrupted": {outcome{asked: asked, err: &engine.Error{Cause: errors.New("the manager ends")}}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			said := events.NewFakeRecorder(9)
			r, s := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second), Events: said}, testScope()
			s.job = &hostrun.State[outcome]{
				What: string(bootstrapv1.RestartOperation), Started: asked, Ended: asked.Add(1500 * time.Millisecond), Result: tc.out,
			}
			if goOn, _, err := r.collectResult(t.Context(), s); goOn || err != nil {
				t.Fatalf("goes on %v, %v", goOn, err)
			}
			last := s.config.Status.Operation(bootstrapv1.RestartOperation)
			if last.Outcome != tc.want || last.Message != tc.says {
				t.Errorf("it is noted as %s: %q", last.Outcome, last.Message)
			}
			var told []string
			for len(said.Events) > 0 {
				told = append(told, <-said.Events)
			}
			if (tc.event != "") != slices.ContainsFunc(told, func(e string) bool { return strings.HasPrefix(e, tc.event) }) {
				t.Errorf("it is told %q", told)
			}
		})
	}
}

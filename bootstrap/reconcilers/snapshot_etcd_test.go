// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func saver() spec.Target {
	target := spec.Target{
		ClusterName: "prod", KubernetesVersion: "v1.36.3",
		Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.1.0.1"},
	}
	target.Default()
	return target
}

// TestSave saves one snapshot for each time at which it is asked for.
func TestSave(t *testing.T) {
	m, snapshot := fake.New("cp1"), saveEtcd.do
	count, full := 0, false
	m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
		if !strings.Contains(strings.Join(c.Argv, " "), "snapshot save") {
			return host.Result{}
		}
		if count++; full {
			return host.Result{ExitCode: 1, Stderr: []byte("etcd gives no snapshot: there is no space\n")}
		}
		return host.Result{}
	}
	options := engine.Options{
		Dial:   func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
		Holder: "test", Reader: event.ReaderFunc(func(event.Event) {}),
	}
	first := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		what  string
		asked time.Time
		want  int
	}{
		{"asked for", first, 1}, {"asked for once", first, 1}, {"asked for again", first.Add(time.Minute), 2},
	} {
		if out := snapshot(t.Context(), options, saver(), step.asked); out.err != nil ||
			!out.asked.Equal(step.asked) || count != step.want {
			t.Errorf("%s: %d snapshots, want %d: %v", step.what, count, step.want, out.err)
		}
	}
	full = true
	if out := snapshot(t.Context(), options, saver(), first.Add(time.Hour)); out.err == nil || !strings.Contains(out.err.Error(), "there is no space") {
		t.Errorf("it says %v", out.err)
	}
	worker := saver()
	worker.Host.Role = spec.RoleWorker
	if out := snapshot(t.Context(), options, worker, first); out.err == nil || !strings.Contains(out.err.Error(), "no control plane host") {
		t.Errorf("a worker says %v", out.err)
	}
}

// starts reports whether an operation that needs no check is started.
func starts(t *testing.T, r *KubexmConfigReconciler, s *scope, o operation) bool {
	t.Helper()
	goOn, _, err := r.operate([]operation{o})(t.Context(), s)
	if err != nil {
		t.Errorf("%s: %v", o.name, err)
	}
	return !goOn
}

// TestSavesEtcd: it is tried once for each time that it is asked for, again where that was interrupted, and its end is in the status.
func TestSavesEtcd(t *testing.T) {
	asked := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := testScope()
	s.config.UID = "1"
	r := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second), Events: events.NewFakeRecorder(9)}
	started := make(chan struct{}, 9)
	s.planned = &job{target: saver(), options: engine.Options{
		Dial: func(ctx context.Context, _ string) (host.Host, error) {
			started <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
		Holder: "test", Reader: event.ReaderFunc(func(event.Event) {}),
	}}
	saves := func(what string, want bool) {
		t.Helper()
		if got := starts(t, r, s, operation{
			name: saveEtcd.name, due: func(_ context.Context, s *scope) (*run, error) { return saveEtcd.due(s), nil },
		}); got != want {
			t.Errorf("%s: saved is %v", what, got)
		}
	}
	saves("nobody asks", false)
	s.config.Annotations = map[string]string{bootstrapv1.SaveEtcdAnnotation: "now"}
	saves("somebody asks for no time", false)
	s.config.Ask(bootstrapv1.SaveEtcdAnnotation, asked)
	saves("somebody asks", true)
	<-started
	t.Cleanup(func() { r.Runner.Cancel(s.key, errDeleting) })

	ends := func(err error) bootstrapv1.OperationStatus {
		t.Helper()
		s.ended = false
		s.job = &hostrun.State[outcome]{
			What: string(bootstrapv1.SaveEtcdOperation), Started: asked,
			Ended: asked.Add(3 * time.Second), Result: outcome{asked: asked, err: err},
		}
		if goOn, _, err := r.collectResult(t.Context(), s); goOn || err != nil || !s.ended {
			t.Errorf("goes on %v, ended %v: %v", goOn, s.ended, err)
		}
		return *s.config.Status.Operation(bootstrapv1.SaveEtcdOperation)
	}
	if got := ends(&engine.Error{Cause: errors.New("the manager ends")}); !got.RequestTime.IsZero() {
		t.Errorf("interrupted, it says %+v", got)
	}
	want := bootstrapv1.OperationStatus{
		Type: bootstrapv1.SaveEtcdOperation, StartTime: metav1.NewTime(asked),
		RequestTime: metav1.NewTime(asked), EndTime: metav1.NewTime(asked.Add(3 * time.Second)), Outcome: bootstrapv1.RunFailed, Message: "no space",
	}
	if diff := cmp.Diff(want, ends(errors.New("no space"))); diff != "" {
		t.Error(diff)
	}
	saves("it has failed", false)
	want.Outcome, want.Message = bootstrapv1.RunSucceeded, ""
	if diff := cmp.Diff(want, ends(nil)); diff != "" {
		t.Error(diff)
	}
	saves("it was saved", false)
}

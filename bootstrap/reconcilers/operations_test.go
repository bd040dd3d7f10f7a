// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostlogs"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestOperate: the first that is due is started; who interrupts stops what goes on, and others wait for it.
func TestOperate(t *testing.T) {
	stop := errors.New("something else comes first")
	for name, tc := range map[string]struct {
		due     []string
		refused bool
		running string
		want    string
	}{
		"nothing is due":                    {nil, false, "", "goes on"},
		"the first that is due":             {[]string{"b", "c"}, false, "", "b"},
		"what is not let be":                {[]string{"b", "c"}, true, "", "c waits"},
		"it waits for what goes on":         {[]string{"b"}, false, "c", "waits for c"},
		"it stops what goes on":             {[]string{"a"}, false, "c", "has stopped c"},
		"but not itself":                    {[]string{"a"}, false, "a", "waits for a"},
		"what goes on, where nothing comes": {nil, false, "c", "goes on"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			s.key.Name = "prod-w1"
			r := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 9, time.Second)}
			cause := make(chan error, 2)
			work := func(ctx context.Context, _ event.Reader) (ended outcome) {
				<-ctx.Done()
				cause <- context.Cause(ctx)
				ended.err = context.Cause(ctx)
				return ended
			}
			t.Cleanup(func() { r.Runner.Cancel(s.key, errDeleting) })
			if tc.running != "" {
				r.Runner.Start(s.key, run{What: tc.running, Do: work})
				job, _ := r.Runner.Observe(s.key)
				s.job = &job
			}
			checks := 0
			check := phase{"ask", func(context.Context, *scope) (bool, ctrl.Result, error) {
				checks++
				return !tc.refused, ctrl.Result{RequeueAfter: time.Hour}, nil
			}}
			of := func(name string, interrupts error, checks ...phase) operation {
				due := func(context.Context, *scope) (*run, error) {
					if !slices.Contains(tc.due, name) {
						return nil, nil
					}
					return &run{Do: work}, nil
				}
				return operation{name: bootstrapv1.OperationType(name), interrupts: interrupts, checks: checks, due: due}
			}
			goOn, result, err := r.operate([]operation{of("a", stop), of("b", nil, check), of("c", nil, check)})(t.Context(), s)
			job, found := r.Runner.Observe(s.key)
			got := "goes on"
			switch {
			case !goOn && result.RequeueAfter == time.Hour:
				got = "c waits"
			case !goOn && tc.running == "" && found:
				got = job.What
			case !goOn && strings.HasPrefix(tc.want, "has stopped"):
				if got = "has stopped " + tc.running; !errors.Is(<-cause, stop) {
					t.Error("it was stopped for something else")
				}
			case !goOn:
				got = "waits for " + job.What
			}
			if err != nil || got != tc.want || checks > 1 {
				t.Errorf("%s after %d checks, want %s: %v", got, checks, tc.want, err)
			}
		})
	}
}

// TestJobOfAnotherObject: what was run for a KubexmConfig that was removed by force, and made anew by its name, is not taken for the new
// one's.
func TestJobOfAnotherObject(t *testing.T) {
	config := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w1", UID: "2"}}
	config.Spec.HostRef = bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd}
	key := client.ObjectKeyFromObject(config)
	for name, objects := range map[string][]client.Object{"made anew": {config}, "removed": nil} {
		t.Run(name, func(t *testing.T) {
			api := clientfake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).WithStatusSubresource(config).Build()
			r := &KubexmConfigReconciler{Client: api, Reader: api, Runner: NewRunner(t.Context(), 1, time.Second)}
			stopped := make(chan error, 1)
			r.Runner.Start(key, run{What: converging, Of: "1", Do: func(ctx context.Context, _ event.Reader) outcome {
				<-ctx.Done()
				stopped <- context.Cause(ctx)
				return outcome{input: "a"}
			}})
			if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || result != (ctrl.Result{}) {
				t.Fatal(result, err)
			}
			<-ended(t, r.Runner)
			if err := <-stopped; !errors.Is(err, errGone) {
				t.Errorf("it was stopped for %v", err)
			}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if job, found := r.Runner.Observe(key); found {
				t.Errorf("its result is there still: %+v", job)
			}
			if len(config.Status.Operations) > 0 {
				t.Errorf("it is the new one's: %+v", config.Status)
			}
		})
	}
}

// TestAskedWithFractions: a time with fractions of a second is answered once. The status has seconds.
func TestAskedWithFractions(t *testing.T) {
	s := testScope()
	s.config.Annotations = map[string]string{bootstrapv1.CollectLogsAnnotation: "2026-11-23T12:00:00.123456Z"}
	asked := s.asks(bootstrapv1.CollectLogsOperation)
	if want := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC); !asked.Equal(want) {
		t.Fatalf("it was asked for at %s", asked)
	}
	s.job = &hostrun.State[outcome]{What: collecting, Started: time.Now(), Ended: time.Now(), Result: outcome{asked: asked}}
	record(s, "")
	raw, err := json.Marshal(s.config.Status)
	if err != nil {
		t.Fatal(err)
	}
	s.config.Status = bootstrapv1.KubexmConfigStatus{}
	if err := json.Unmarshal(raw, &s.config.Status); err != nil {
		t.Fatal(err)
	}
	if again := s.asks(bootstrapv1.CollectLogsOperation); !again.IsZero() {
		t.Errorf("it is done again for %s", again)
	}
}

// TestConvergeAfterAReboot: a host that was rebooted, as was asked for, is brought to what it must be, also where drift is only reported.
func TestConvergeAfterAReboot(t *testing.T) {
	at := func(minute int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 23, 12, minute, 0, 0, time.UTC))
	}
	for name, tc := range map[string]struct {
		rebooted, converged metav1.Time
		came                bootstrapv1.RunOutcome
		known               bool // by this process
		want                action
	}{
		"it has":                      {at(5), at(1), bootstrapv1.RunSucceeded, true, converges},
		"and another process goes on": {at(5), at(1), bootstrapv1.RunSucceeded, false, weighs}, // before it converges
		"that was interrupted":        {at(5), at(6), bootstrapv1.RunInterrupted, true, converges},
		"that was done":               {at(5), at(6), bootstrapv1.RunSucceeded, false, look},
		"that was done here":          {at(5), at(6), bootstrapv1.RunSucceeded, true, rest},
		"it has not":                  {metav1.Time{}, at(1), bootstrapv1.RunSucceeded, true, rest},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForeigner(t)
			s := testScope()
			s.config.UID, s.config.Spec.DriftPolicy = "1", spec.DriftReport
			f.r.DriftCheckInterval, f.r.Clock = time.Hour, clock.RealClock{}
			j, err := f.r.jobFor(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			s.config.Status.SetOperation(bootstrapv1.OperationStatus{
				Type: bootstrapv1.ConvergeOperation, EndTime: tc.converged, Outcome: tc.came, InputDigest: j.input,
			})
			s.config.Status.SetOperation(bootstrapv1.OperationStatus{Type: bootstrapv1.RebootOperation, EndTime: tc.rebooted})
			if tc.known {
				f.r.store("1", hostCache{input: j.input, ended: time.Now(), converged: true, drifted: true, begun: j.input})
			}
			if goOn, _, err := f.r.decideNeed(t.Context(), s); !goOn || err != nil {
				t.Fatal(goOn, err)
			}
			if s.needed.act != tc.want {
				t.Errorf("it is to %s, want %s", s.needed.act, tc.want)
			}
		})
	}
}

// TestEachOperationOnce: what the API knows is in one of the tables; a host is enrolled before anything else.
func TestEachOperationOnce(t *testing.T) {
	r, seen := &KubexmConfigReconciler{}, map[bootstrapv1.OperationType]int{}
	for _, o := range append(r.operations(), r.departures()...) {
		if seen[o.name]++; o.due == nil || o.settle == nil {
			t.Errorf("%s has no beginning or no end", o.name)
		}
	}
	if first := r.operations()[0].name; first != bootstrapv1.EnrollOperation {
		t.Errorf("%s comes before a host is enrolled", first)
	}
	for _, name := range []bootstrapv1.OperationType{
		bootstrapv1.EnrollOperation, bootstrapv1.ConvergeOperation, bootstrapv1.ConvergeNonDisruptiveOperation,
		bootstrapv1.CheckDriftOperation, bootstrapv1.AssessDisruptionOperation,
		bootstrapv1.RebootOperation, bootstrapv1.RestartOperation, bootstrapv1.RenewCertificatesOperation,
		bootstrapv1.CollectLogsOperation,
		bootstrapv1.RecoverCertificatesOperation, bootstrapv1.SaveEtcdOperation,
		bootstrapv1.BackupEtcdOperation, bootstrapv1.AskEtcdOperation, bootstrapv1.CloseAccessOperation,
		bootstrapv1.StopAPIServerOperation, bootstrapv1.ResetOperation,
	} {
		if seen[name] != 1 {
			t.Errorf("%s is there %d times", name, seen[name])
		}
		delete(seen, name)
	}
	if len(seen) > 0 {
		t.Errorf("the API knows nothing of %v", seen)
	}
}

// TestCollectLogs: what a host has logged is kept, or it is said why not, and the audit record and metrics hear of it as of a run.
func TestCollectLogs(t *testing.T) {
	asked := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		dir    bool
		away   error
		want   string
		events []event.Type
	}{
		"it is kept":        {dir: true, events: []event.Type{event.RunStarted, event.Started, event.Changed, event.RunEnded}},
		"nobody keeps logs": {want: "--host-logs-dir", events: []event.Type{event.RunStarted, event.Started, event.Failed, event.RunEnded}},
		"the host is away": {dir: true, away: errors.New("no route"), want: "no route",
			events: []event.Type{event.RunStarted, event.Started, event.Failed, event.RunEnded}},
		"the manager stops": {dir: true, away: context.Canceled, want: "interrupted",
			events: []event.Type{event.RunStarted, event.Started, event.Failed, event.RunEnded}},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := fake.New("w1"), testScope()
			m.OnCommand = func(*fake.Machine, host.Command) host.Result { return host.Result{Stdout: []byte("the last words")} }
			var told []event.Event
			r := &KubexmConfigReconciler{
				Events: events.NewFakeRecorder(9), Holder: "test", Reads: event.ReaderFunc(func(e event.Event) { told = append(told, e) }),
			}
			if tc.dir {
				r.Logs = hostlogs.Dir(t.TempDir())
			}
			s.config.Ask(bootstrapv1.CollectLogsAnnotation, asked)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			j, keep := r.withoutPlan(s, collecting, asked), r.keeper(s)
			j.ownership = func(context.Context, string) (host.Ownership, error) { return host.Ownership{}, nil }
			j.dial = func(context.Context, string) (host.Host, error) {
				if errors.Is(tc.away, context.Canceled) {
					cancel(hostrun.ErrStopped)
				}
				return m.Connect(), tc.away
			}
			out := j.collect(ctx, nobody, keep)
			s.job = &hostrun.State[outcome]{What: collecting, Started: asked, Ended: asked.Add(time.Second), Result: out}
			if goOn, _, err := r.collectResult(t.Context(), s); goOn || err != nil || !s.ended {
				t.Fatalf("goes on %v, %v", goOn, err)
			}
			var types []event.Type
			for _, e := range told {
				types = append(types, e.Type)
			}
			if !slices.Equal(types, tc.events) || told[0].Intent != collecting || told[1].Host != "w1" || told[0].Pipeline != told[3].Pipeline {
				t.Errorf("it was told %+v", told)
			}
			last := s.config.Status.Operation(bootstrapv1.CollectLogsOperation)
			switch {
			case tc.want == "interrupted":
				if !last.EndTime.IsZero() || s.asks(bootstrapv1.CollectLogsOperation).IsZero() {
					t.Errorf("it is not tried again: %+v", last)
				}
				return
			case tc.want != "":
				if last.Outcome != bootstrapv1.RunFailed || !strings.Contains(last.Message, tc.want) {
					t.Errorf("it says %+v", last)
				}
			default:
				if content, err := os.ReadFile(last.Message); err != nil || string(content) != "the last words" {
					t.Errorf("%q, %v", content, err)
				}
			}
			if !s.asks(bootstrapv1.CollectLogsOperation).IsZero() {
				t.Error("it is done again")
			}
			if stats := m.Stats(); stats.BytesStaged > 0 {
				t.Errorf("it has written to the host: %+v", stats)
			}
		})
	}
}

// TestDriftCheckOfFailingHost: who asks what differs on a host on which runs fail is answered, and nothing is tried for that.
func TestDriftCheckOfFailingHost(t *testing.T) {
	h, asked := newSlowHost(t), time.Now().Truncate(time.Second)
	before := hostCache{input: "a", ended: asked.Add(-time.Minute), failures: 3, restored: 3}
	h.r.store(h.s.config.UID, before)
	j := h.job()
	j.asked, j.reportOnly = asked, true
	h.s.job = &hostrun.State[outcome]{What: looking, Started: asked, Ended: asked.Add(time.Second), Result: j.look(t.Context(), nobody)}
	if goOn, _, err := h.r.collectResult(t.Context(), h.s); goOn || err != nil {
		t.Fatal(goOn, err)
	}
	if now := h.r.cached(h.s.config.UID); now != before || !now.exhausted() {
		t.Errorf("it is remembered as %+v", now)
	}
	last := h.s.config.Status.Operation(bootstrapv1.CheckDriftOperation)
	if last.Outcome != bootstrapv1.RunSucceeded || *last.Differing != 1 ||
		!strings.Contains(last.Message, "/etc/a") || !last.RequestTime.Time.Equal(asked) {
		t.Errorf("it says %+v", last)
	}

	h.s.job.Result = outcome{input: "a", asked: asked, reportOnly: true, err: &engine.Error{Cause: errors.New("the manager ends")}}
	h.s.config.Status.Operations = nil
	if _, _, err := h.r.collectResult(t.Context(), h.s); err != nil || len(h.s.config.Status.Operations) > 0 {
		t.Errorf("interrupted, it says %+v, %v", h.s.config.Status.Operations, err)
	}
}

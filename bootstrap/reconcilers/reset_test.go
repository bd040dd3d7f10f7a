// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestNotReset: no deletion waits for a host for ever, and a host is given up no sooner than is declared.
func TestNotReset(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	begun := func(s *scope, ago time.Duration, reason string) tries {
		setFalse(s.config, bootstrapv1.HostResetCondition, reason, "what is for people, and the next attempt")
		if reason == bootstrapv1.ResettingReason {
			return tries{began: now.Add(-ago)}
		}
		s.config.Status.OperationFor(bootstrapv1.ResetOperation).Message = "the disk is full"
		return tries{began: now.Add(-ago), resetFailures: 1}
	}
	unreachable := func(s *scope) tries {
		setFalse(s.config, bootstrapv1.HostReachableCondition, bootstrapv1.UnreachableReason, "what is for people")
		s.config.Status.OperationFor(bootstrapv1.ResetOperation).Message = "no route to host"
		return tries{}
	}
	nameless := func(since time.Duration, lost bool) func(*scope) tries {
		return func(s *scope) tries {
			s.host, s.waiting, s.lost = nil, decision.Block(bootstrapv1.WaitingForHostReason, "the KubexmHost is not there"), lost
			return tries{sought: now.Add(-since)}
		}
	}
	for name, tc := range map[string]struct {
		cluster, node spec.Reset
		change        func(*scope) tries
		alone         bool   // the KubexmClusterConfig has gone before the host
		want          string // how it begins; "" is that the host is to be reset
	}{
		"it has not begun": {},
		"it has failed a while ago": {change: func(s *scope) tries {
			return begun(s, 9*time.Minute, bootstrapv1.ResetFailedReason)
		}},
		"by default, it has ten minutes": {change: func(s *scope) tries {
			return begun(s, 10*time.Minute, bootstrapv1.ResetFailedReason)
		}, want: "the host was released without a reset after 10m0s (reset.timeoutSeconds): the disk is full"},
		"also while it goes on": {change: func(s *scope) tries {
			return begun(s, 10*time.Minute, bootstrapv1.ResettingReason)
		}, want: "the host was released without a reset after 10m0s (reset.timeoutSeconds): it has not ended yet"},
		"it was tried before a pause, or by another process": {
			node: spec.Reset{Policy: spec.ResetWhenReachable}, change: func(s *scope) tries {
				begun(s, time.Hour, bootstrapv1.ResetFailedReason)
				return unreachable(s)
			},
		},
		"the cluster gives it more": {
			cluster: spec.Reset{TimeoutSeconds: ptr.To[int32](3600)}, change: func(s *scope) tries {
				return begun(s, 10*time.Minute, bootstrapv1.ResetFailedReason)
			},
		},
		"the host's own counts first": {
			cluster: spec.Reset{TimeoutSeconds: ptr.To[int32](3600)}, node: spec.Reset{TimeoutSeconds: ptr.To[int32](60)},
			change: func(s *scope) tries { return begun(s, time.Minute, bootstrapv1.ResetFailedReason) },
			want:   "the host was released without a reset after 1m0s",
		},
		"never":                    {cluster: spec.Reset{Policy: spec.ResetNever}, want: "the host was not reset, as reset.policy says"},
		"never, but for this host": {cluster: spec.Reset{Policy: spec.ResetNever}, node: spec.Reset{Policy: spec.ResetAlways}},
		"never, and nobody says so any more": {
			cluster: spec.Reset{Policy: spec.ResetNever}, alone: true, want: "the host was not reset, as reset.policy says",
		},
		"never, but for this host, and nobody says so any more": {
			cluster: spec.Reset{Policy: spec.ResetNever}, node: spec.Reset{Policy: spec.ResetAlways}, alone: true,
		},
		"the cluster gave it more, when it was there": {
			cluster: spec.Reset{TimeoutSeconds: ptr.To[int32](3600)}, alone: true, change: func(s *scope) tries {
				return begun(s, 10*time.Minute, bootstrapv1.ResetFailedReason)
			},
		},
		"the cluster said nothing, when it was there": {alone: true},
		"what it said cannot be read": {alone: true, change: func(s *scope) tries {
			s.config.Annotations = map[string]string{bootstrapv1.ClusterResetAnnotation: `{"policy":"never"}`}
			return tries{}
		}, want: "the host was not reset, as reset.policy says"},
		"one that may not be there": {node: spec.Reset{Policy: spec.ResetWhenReachable}, change: unreachable},
		"one that does not answer": {
			node: spec.Reset{Policy: spec.ResetWhenReachable},
			change: func(s *scope) tries {
				unreachable(s)
				return tries{began: now.Add(-time.Second), resetFailures: 1, away: true}
			},
			want: "the host does not answer, and was released without a reset, as reset.policy says (WhenReachable): no route to host",
		},
		"one that answers and cannot be reset": {
			node: spec.Reset{Policy: spec.ResetWhenReachable}, change: func(s *scope) tries {
				unreachable(s) // as an attempt says that goes on
				return begun(s, time.Second, bootstrapv1.ResetFailedReason)
			},
		},
		"somebody says so": {change: func(s *scope) tries {
			s.machine.Annotations = map[string]string{bootstrapv1.SkipHostResetAnnotation: ""}
			return tries{}
		}, want: "the host was released without a reset, as the annotation"},
		"there is none":       {change: nameless(0, true), want: "there is no host to reset: the KubexmHost is not there"},
		"it is not named now": {change: nameless(time.Hour, false)},
		"it is not named, and never reset": {
			node: spec.Reset{Policy: spec.ResetNever}, change: nameless(0, false), want: "the host was not reset",
		},
		"one that may not be there is not named now": {
			node: spec.Reset{Policy: spec.ResetWhenReachable}, change: nameless(9*time.Minute, false),
		},
		"and has not been for long": {
			node: spec.Reset{Policy: spec.ResetWhenReachable}, change: nameless(10*time.Minute, false),
			want: "the host was not named for 10m0s (reset.timeoutSeconds), and was released without a reset",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{
				config: &bootstrapv1.KubexmConfig{}, machine: &clusterv1.Machine{},
				clusterConfig: &bootstrapv1.KubexmClusterConfig{}, host: &infra.Host{Host: spec.Host{Name: "w1"}},
			}
			s.clusterConfig.Spec.Cluster.Reset, s.config.Spec.Reset = tc.cluster, tc.node
			if tc.alone {
				if err := s.recordReset(); err != nil {
					t.Fatal(err)
				}
				s.clusterConfig = nil
			}
			m := hostCache{}
			if tc.change != nil {
				m.tries = tc.change(s)
			}
			got := s.notReset(&m, now)
			if (got == nil) != (tc.want == "") || !strings.HasPrefix(got.String(), tc.want) {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
			if got != nil && got.Reason != bootstrapv1.HostResetSkippedReason {
				t.Errorf("the reason is %s", got.Reason)
			}
		})
	}
}

// naming is an infrastructure that names a host, or says why not. What is reported to it is refused while it does not.
type naming struct {
	adapter
	host *infra.Host
	err  error
}

func (n *naming) Host(context.Context, infra.Subject) (*infra.Host, error) { return n.host, n.err }
func (*naming) HasDoor() bool                                              { return false }

func (n *naming) ReportReset(ctx context.Context, s infra.Subject, c infra.ResetResult) error {
	if n.err != nil {
		return n.err
	}
	return n.adapter.ReportReset(ctx, s, c)
}

// leaver is a Machine that is deleted, and waits for nothing but the reset of its host.
func leaver(t *testing.T, in *naming) (*KubexmConfigReconciler, *scope) {
	t.Helper()
	f := newForeigner(t)
	f.makeAuthority()
	s := testScope()
	s.config.UID, s.key, s.host, s.adapter = "1", client.ObjectKeyFromObject(s.config), nil, in
	s.machine.Namespace, s.machine.Name, s.machine.Annotations = "fleet", "prod-w1", map[string]string{bootstrapv1.HostResetHook: ""}
	if err := f.Create(t.Context(), s.machine); err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	s.machine.DeletionTimestamp = &now
	f.r.Runner, f.r.Events = NewRunner(t.Context(), 1, time.Second), events.NewFakeRecorder(20)
	f.r.Dial = func(context.Context, ssh.Config) (host.Host, error) { return nil, errors.New("nobody is dialled here") }
	return f.r, s
}

// leave does what is due with a host that leaves, and reports whether the Machine is still held.
func leave(t *testing.T, r *KubexmConfigReconciler, s *scope) (held bool) {
	t.Helper()
	s.host, s.waiting, s.lost, s.job = nil, nil, false, nil
	if _, _, err := r.operate(r.departures())(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s.held()
}

// TestHostThatIsNotNamedIsWaitedFor: infrastructure that does not name the host for a while, because a status was lost or its kind is not
// installed, has it not released without a reset. When it is named, it is reset, and has all of its time for that.
func TestHostThatIsNotNamedIsWaitedFor(t *testing.T) {
	in := &naming{err: &infra.HostPending{Message: "the KubexmMachine w1 has no host yet"}}
	r, s := leaver(t, in)
	r.store("1", hostCache{tries: tries{began: time.Now().Add(-time.Hour), resetFailures: 3}}) // it was named before
	for range 2 {
		if !leave(t, r, s) {
			t.Fatal("the host is released")
		}
	}
	said := conditions.Get(s.config, bootstrapv1.HostResetCondition)
	if said == nil || said.Reason != bootstrapv1.WaitingForHostReason || !strings.Contains(said.Message, "has no host yet") ||
		!strings.Contains(said.Message, bootstrapv1.SkipHostResetAnnotation) {
		t.Errorf("it says %+v", said)
	}

	in.host, in.err = &infra.Host{Host: spec.Host{Name: "w1", Address: "10.1.0.2"}}, nil
	if !leave(t, r, s) {
		t.Fatal("the host is released")
	}
	if job, found := r.Runner.Observe(s.key); !found || job.What != resetting || job.Of != "1" {
		t.Errorf("it is not reset: %+v", job)
	}
	if reason := conditions.GetReason(s.config, bootstrapv1.HostResetCondition); reason != bootstrapv1.ResettingReason {
		t.Errorf("it says %s", reason)
	}
	if m := r.cached("1"); time.Since(m.began) > time.Minute {
		t.Errorf("it is tried since %s", m.began)
	}
	<-ended(t, r.Runner)
}

// TestTimeOfAResetBeginsAnew: while it is paused, or the host is in maintenance, nobody tries to reset the host, and no time passes for
// that.
func TestTimeOfAResetBeginsAnew(t *testing.T) {
	before := hostCache{input: "a", tries: tries{began: time.Now().Add(-time.Hour), resetFailures: 2, away: true}}
	config := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "e1", UID: "1", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		Finalizers: []string{bootstrapv1.ConfigFinalizer},
	}}
	config.Spec.HostRef = bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
	cluster.Spec.Paused = ptr.To(true)
	for name, waits := range map[string]func(*testing.T, *KubexmConfigReconciler) error{
		"paused": func(t *testing.T, r *KubexmConfigReconciler) error {
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
			return err
		},
		"in maintenance": func(t *testing.T, r *KubexmConfigReconciler) error {
			in := &naming{host: &infra.Host{Host: spec.Host{Name: "e1"}, Maintenance: "a new disk"}}
			_, _, err := r.waitForMaintenanceToReset(t.Context(), &scope{config: config.DeepCopy(), adapter: in})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForeigner(t)
			for _, o := range []client.Object{config.DeepCopy(), cluster.DeepCopy()} {
				if err := f.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			f.r.Runner = NewRunner(t.Context(), 1, time.Second)
			f.r.store("1", before)
			if err := waits(t, f.r); err != nil {
				t.Fatal(err)
			}
			if m := f.r.cached("1"); m.tries != (tries{}) || m.input != before.input {
				t.Errorf("what was tried before counts: %+v", m)
			}
		})
	}
}

// TestHostThatIsNotNamedIsReleased where nobody is to reset it, or it is gone.
func TestHostThatIsNotNamedIsReleased(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		change func(*scope)
	}{
		"gone":          {&infra.HostGone{Message: "the KubexmHost w1 does not exist any more"}, func(*scope) {}},
		"somebody says": {&infra.HostPending{}, func(s *scope) { s.machine.Annotations[bootstrapv1.SkipHostResetAnnotation] = "" }},
		"never":         {&infra.HostPending{}, func(s *scope) { s.config.Spec.Reset.Policy = spec.ResetNever }},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := leaver(t, &naming{err: tc.err})
			tc.change(s)
			if leave(t, r, s) {
				t.Errorf("it is waited for: %v", s.config.Status.Conditions)
			}
		})
	}
}

// TestHostThatHasAnswered: by WhenReachable, a host is given up that does not answer to a reset, and not one that was not reached before,
// nor one that answers and cannot be reset.
func TestHostThatHasAnswered(t *testing.T) {
	unreachable := &engine.Error{Failures: []engine.Failure{{
		Host: "w1", Err: &host.Error{Kind: host.KindUnreachable, Host: "w1", Message: "no route"},
	}}}
	for name, tc := range map[string]struct {
		err           error
		reached, gone bool
		answers       string
	}{
		"it does not answer":       {unreachable, false, true, bootstrapv1.UnreachableReason},
		"it answers no longer":     {unreachable, true, false, bootstrapv1.UnreachableReason},
		"it answers, and it fails": {errors.New("disk full"), true, false, bootstrapv1.HostReachableReason},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := leaver(t, &naming{host: &infra.Host{Host: spec.Host{Name: "w1", Address: "10.1.0.2"}}})
			s.config.Spec.Reset.Policy = spec.ResetWhenReachable
			setFalse(s.config, bootstrapv1.HostReachableCondition, bootstrapv1.UnreachableReason, "as it was before it was deleted")
			r.store("1", hostCache{tries: tries{began: time.Now()}})
			s.job = &hostrun.State[outcome]{What: resetting, Started: time.Now(), Ended: time.Now(), Result: outcome{
				err: tc.err, reached: tc.reached,
			}}
			if _, err := r.settleReset(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if reason := conditions.GetReason(s.config, bootstrapv1.HostReachableCondition); reason != tc.answers {
				t.Errorf("it says %s", reason)
			}
			if held := leave(t, r, s); held == tc.gone {
				t.Errorf("held %v: %v", held, s.config.Status.Conditions)
			}
		})
	}
}

// TestCleanHostIsReported: infrastructure that does not name the host when it has been reset hears of that when it does. Else it would take
// the host for one that was left as it was.
func TestCleanHostIsReported(t *testing.T) {
	in := &naming{host: &infra.Host{Host: spec.Host{Name: "w1"}}, err: &infra.HostPending{Message: "no host yet"}}
	r, s := leaver(t, in)
	s.host = in.host
	s.job = &hostrun.State[outcome]{What: resetting, Started: time.Now(), Ended: time.Now(), Result: outcome{
		reached: true, system: &host.System{}, report: engine.Report{Hosts: []engine.HostReport{{Host: "w1"}}},
	}}
	if _, err := r.settleReset(t.Context(), s); err == nil || !s.held() {
		t.Fatalf("it is released, and nobody was told: %v", err)
	}
	in.err = nil
	if _, err := r.settleReset(t.Context(), s); err != nil || s.held() || in.left == nil || in.left.Err != nil {
		t.Errorf("held %v, told %+v: %v", s.held(), in.left, err)
	}
}

// TestResetWithoutACluster: a host that is no Machine's is reset when it leaves, also where its Cluster is gone.
func TestResetWithoutACluster(t *testing.T) {
	r, s := leaver(t, &naming{host: &infra.Host{Host: spec.Host{Name: "e1", Address: "10.1.0.3"}}})
	now := metav1.Now()
	s.config.DeletionTimestamp, s.config.Labels = &now, map[string]string{clusterv1.ClusterNameLabel: "prod"}
	s.config.Spec.HostRef = bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd}
	s.machine, s.cluster, s.clusterConfig = nil, nil, nil
	if _, err := r.reconcileDelete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if job, found := r.Runner.Observe(s.key); !found || job.What != resetting {
		t.Errorf("it is not reset: %+v", job)
	}
	claim, err := r.ownership(s)(t.Context(), "e1")
	if err != nil || claim.Owner.Cluster != "fleet/prod" {
		t.Errorf("it is reset for %+v: %v", claim, err)
	}
	<-ended(t, r.Runner)
}

// TestAPIServerOfANamelessHost: how long a host is waited for whose API server is to end counts from when somebody could wait for it:
// neither from its deletion, nor through a pause.
func TestAPIServerOfANamelessHost(t *testing.T) {
	r, s := leaver(t, &naming{err: &infra.HostPending{Message: "no host yet"}})
	longAgo := metav1.NewTime(time.Now().Add(-time.Hour))
	s.machine.DeletionTimestamp = &longAgo
	s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	s.machine.Annotations[clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/theirs"] = ""
	s.machine.Spec.Bootstrap.ConfigRef.Name = s.config.Name
	s.clusterConfig.Spec.Members = []bootstrapv1.ClusterMember{
		{Name: "cp1", ConfigName: s.config.Name, Role: spec.RoleControlPlane, Phase: bootstrapv1.MemberDraining, Address: "10.1.0.1"},
		{Name: "cp2", ConfigName: "other", Role: spec.RoleControlPlane, Phase: bootstrapv1.MemberServing, Address: "10.1.0.2"},
	}
	given := func() bool {
		if due, err := r.stopIsDue(t.Context(), s); due != nil || err != nil {
			t.Fatalf("%v, %v", due, err)
		}
		return conditions.Has(s.config, bootstrapv1.APIServerStoppedCondition)
	}
	if given() {
		t.Fatal("it is given up at once")
	}
	r.store("1", hostCache{tries: tries{sought: time.Now().Add(-locateLimit)}})
	if !given() {
		t.Error("others wait for ever")
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestEtcdQuery: who has a member is asked, and nobody else.
func TestEtcdQuery(t *testing.T) {
	for name, tc := range map[string]struct {
		role   spec.Role
		change func(*spec.Etcd)
		want   bool
	}{
		"a control plane host":                   {spec.RoleControlPlane, func(*spec.Etcd) {}, true},
		"with kubeadm's etcd":                    {spec.RoleControlPlane, func(e *spec.Etcd) { e.Type = spec.EtcdKubeadm }, true},
		"with an etcd that others run":           {spec.RoleControlPlane, func(e *spec.Etcd) { e.Type = spec.EtcdExternal }, false},
		"whose etcd is elsewhere":                {spec.RoleControlPlane, func(e *spec.Etcd) { e.Hosts.Names = []string{"e1"} }, false},
		"a host of etcd's own":                   {spec.RoleEtcd, func(e *spec.Etcd) { e.Hosts.Names = []string{"e1"} }, true},
		"a worker":                               {spec.RoleWorker, func(*spec.Etcd) {}, false},
		"a load balancer":                        {spec.RoleLoadBalancer, func(*spec.Etcd) {}, false},
		"a load balancer beside etcd on its own": {spec.RoleLoadBalancer, func(e *spec.Etcd) { e.Hosts.Names = []string{"e1"} }, false},
	} {
		target := spec.Target{Host: spec.Host{Name: "h1", Role: tc.role, Address: "fd00::1"}}
		tc.change(&target.Cluster.Etcd)
		target.Default()
		q := etcdQuery(&target)
		if q.Empty() == tc.want {
			t.Errorf("%s: asked is %v, want %v", name, !q.Empty(), tc.want)
		}
		if tc.want && !strings.Contains(strings.Join(q.Commands[0].Argv, " "), "name=h1 host=[fd00::1] ") {
			t.Errorf("%s: asked by %v", name, q.Commands[0].Argv[:4])
		}
	}
}

// TestEtcdIsSeen: a look shows what etcd says without an exchange of its own, and who asks has one, whatever the plan is; what was said
// stays where nothing is.
func TestEtcdIsSeen(t *testing.T) {
	m := fake.New("cp1")
	const header = `"header":{"cluster_id":10,"member_id":11}`
	said := host.Result{}
	answer := func(members, alarms string) host.Result {
		return host.Result{Stdout: fmt.Appendf(nil, "asked 1\nmembers {%s,\"members\":[%s]}\nalarms {%s,\"alarms\":[%s]}\n", header, members, header, alarms)}
	}
	m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
		if strings.Contains(strings.Join(c.Argv, " "), "member list") {
			return said
		}
		return host.Result{}
	}
	p := testPlan(t)
	s := testScope()
	r := &KubexmConfigReconciler{Holder: "test", Reader: withAuthority(t, s.cluster)}
	down := false
	newJob := func() *job {
		j := &job{
			target:  spec.Target{ClusterName: "prod", Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.1.0.2"}},
			options: r.optionsFor(s), remembered: &m.System,
			planner: func(pipeline.Node, *artifact.Bundle) (*plan.Plan, error) { return p, nil },
			bundle:  func(context.Context) (*artifact.Bundle, error) { return &artifact.Bundle{}, nil },
		}
		j.options.Also.Merge(etcdQuery(&j.target))
		j.options.Dial = func(context.Context, string) (host.Host, error) {
			if down {
				return nil, &host.Error{Kind: host.KindUnreachable, Host: "cp1", Message: "no route"}
			}
			return m.Connect(), nil
		}
		return j
	}
	nobody := event.ReaderFunc(func(event.Event) {})
	c, began := &bootstrapv1.KubexmConfig{}, time.Now().Truncate(time.Second)
	show := func(what string, out outcome, want bootstrapv1.EtcdStatus) {
		t.Helper()
		began = began.Add(time.Second)
		showEtcd(c, &hostrun.State[outcome]{Started: began, Ended: began.Add(time.Second), Result: out})
		if diff := cmp.Diff(want, c.Status.Etcd); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	at := func(seconds int) metav1.MicroTime {
		return metav1.NewMicroTime(began.Add(time.Duration(seconds) * time.Second).UTC())
	}

	said = answer(`{"ID":11,"name":"cp1","peerURLs":["https://10.1.0.2:2380"]},{"ID":12,"isLearner":true}`, `{"memberID":12,"alarm":1},{"memberID":12,"alarm":1}`)
	out := newJob().converge(t.Context(), nobody)
	want := bootstrapv1.EtcdStatus{
		ObservedTime: at(1), ClusterID: "a", MemberID: "b",
		Members: []bootstrapv1.EtcdMemberStatus{
			{ID: "b", Name: "cp1", PeerURL: "https://10.1.0.2:2380", Type: bootstrapv1.EtcdVoter}, {ID: "c", Type: bootstrapv1.EtcdLearner},
		},
		Alarms: []bootstrapv1.EtcdAlarmStatus{{MemberID: "c", Type: "NOSPACE"}},
	}
	show("after a run", out, want)
	said = host.Result{ExitCode: 1, Stderr: []byte("nothing listens\n")}
	if out = newJob().look(t.Context(), nobody); out.err != nil || out.report.Hosts[0].Exchanges != 1 {
		t.Errorf("a look came to %v after %d exchanges, want 1", out.err, out.report.Hosts[0].Exchanges)
	}
	want = bootstrapv1.EtcdStatus{ObservedTime: at(1), Message: "nothing listens"}
	show("where it does not answer", out, want)
	down = true
	show("where the host does not", newJob().look(t.Context(), nobody), want)
	show("without a plan", outcome{err: errors.New("artifacts: none"), report: engine.Report{}}, want)
	down, said = false, answer(`{"ID":11}`, ``)
	j := newJob()
	j.planner = nil
	want = bootstrapv1.EtcdStatus{
		ObservedTime: at(1), ClusterID: "a", MemberID: "b", Members: []bootstrapv1.EtcdMemberStatus{{ID: "b", Type: bootstrapv1.EtcdVoter}},
	}
	show("when it alone is asked", j.ask(t.Context(), etcdQuery(&j.target), nobody), want)
	down = true
	j = newJob()
	show("when that fails", j.ask(t.Context(), etcdQuery(&j.target), nobody), want)
}

// TestAskEtcd: it is asked once for each time that somebody wants to know, unless it has said so since.
func TestAskEtcd(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	s := testScope()
	s.config.UID = "1"
	r := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second), Clock: clock.RealClock{}}
	t.Cleanup(func() { r.Runner.Cancel(s.key, errDeleting) })
	s.planned = &job{target: spec.Target{Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.1.0.2"}}}
	asks := func(what string, want bool) {
		t.Helper()
		if got := starts(t, r, s, operation{name: bootstrapv1.AskEtcdOperation, due: r.askIsDue}); got != want {
			t.Errorf("%s: asked is %v", what, got)
		}
	}
	asks("nobody wants to know", false)
	s.config.Ask(bootstrapv1.AskEtcdAnnotation, now)
	s.config.Status.Etcd.ObservedTime = metav1.NewMicroTime(now.Add(time.Millisecond))
	asks("it has said so since", false)
	s.config.Status.Etcd.ObservedTime = metav1.NewMicroTime(now.Add(-time.Millisecond))
	s.planned.target.Host.Role = spec.RoleWorker
	asks("a worker", false)
	s.planned.target.Host.Role = spec.RoleControlPlane
	asks("it has not", true)
	s.config.Status.SetOperation(bootstrapv1.OperationStatus{Type: bootstrapv1.AskEtcdOperation, RequestTime: metav1.NewTime(now)})
	asks("it was asked", false)
}

// TestEtcdIsAskedAgain: where etcd has not answered, as one that was being started when a run ended, it is asked again before long, and not
// all the time. What was asked for counts as done as before.
func TestEtcdIsAskedAgain(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	for name, tc := range map[string]struct {
		change func(*scope)
		want   bool
		// after is when it is decided again, at most.
		after time.Duration
	}{
		"it has not answered": {func(*scope) {}, true, time.Hour},
		"it has answered":     {func(s *scope) { s.config.Status.Etcd.Message = "" }, false, time.Hour},
		"it was seen just now": {func(s *scope) {
			s.config.Status.Etcd.ObservedTime = metav1.NewMicroTime(now.Add(-5 * time.Second))
		}, false, 10 * time.Second},
		"the host was never complete": {func(s *scope) { s.config.Status.ConvergedGeneration = 0 }, false, time.Hour},
		"the host is out of reach": {func(s *scope) {
			setFalse(s.config, bootstrapv1.HostReachableCondition, bootstrapv1.UnreachableReason, "no route")
		}, false, time.Hour},
		"it was asked in vain just now": {func(s *scope) {
			s.config.Status.SetOperation(bootstrapv1.OperationStatus{Type: bootstrapv1.AskEtcdOperation, EndTime: metav1.NewTime(now)})
		}, false, unansweredAgain},
	} {
		s := testScope()
		s.config.UID = "1"
		r := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second), Clock: clocktesting.NewFakePassiveClock(now)}
		s.planned = &job{target: spec.Target{Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.1.0.2"}}}
		s.needed.after = time.Hour
		s.config.Status.ConvergedGeneration = 1
		before := metav1.NewMicroTime(now.Add(-unansweredAgain))
		s.config.Status.Etcd = bootstrapv1.EtcdStatus{Message: "nothing listens", ObservedTime: before}
		conditions.Set(s.config, metav1.Condition{Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionTrue, Reason: "Reachable"})
		tc.change(s)
		got := starts(t, r, s, operation{name: bootstrapv1.AskEtcdOperation, due: r.askIsDue})
		if got != tc.want || s.needed.after != tc.after {
			t.Errorf("%s: asked is %v, and decided again after %s", name, got, s.needed.after)
		}
		r.Runner.Cancel(s.key, errDeleting)
	}
}

// TestGoneMembersReachMembers: who has a member removes those that are gone; others have nothing to run for.
func TestGoneMembersReachMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scope)
		want   int
	}{
		"a worker":             {func(*scope) {}, 0},
		"a control plane host": {func(s *scope) { s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""} }, 1},
		"whose etcd is elsewhere": {func(s *scope) {
			s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
			s.clusterConfig.Spec.Cluster.Etcd.Hosts.Names = []string{"e1"}
		}, 0},
		"a host of etcd's own": {func(s *scope) {
			s.machine, s.config.Spec.HostRef = nil, bootstrapv1.HostReference{Name: "w1", Role: spec.RoleEtcd}
			s.clusterConfig.Spec.Cluster.Etcd.Hosts.Names = []string{"w1"}
		}, 1},
	} {
		s := testScope()
		s.clusterConfig.Spec.Cluster.Etcd.GoneMembers = []string{"9974a875e8dcdf1"}
		tc.change(s)
		target, err := targetOf(s)
		if got := len(target.Cluster.Etcd.GoneMembers); err != nil || got != tc.want {
			t.Errorf("%s is told of %d, want %d: %v", name, got, tc.want, err)
		}
	}
}

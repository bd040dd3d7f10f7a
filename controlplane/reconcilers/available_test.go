// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// availableScope is a control plane of three that works.
func availableScope() *scope {
	s := testScope()
	s.Now = time.Now()
	s.Object.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	s.ControlPlane.Workload = &snapshot.Workload{Initialized: true, Components: map[string][]snapshot.Component{}}
	for _, name := range []string{"a", "b", "c"} {
		m := clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
				OwnerReferences: []metav1.OwnerReference{desired.Owner(s.Object)},
			},
			Spec: clusterv1.MachineSpec{
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{Name: name}},
			},
			Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: name}},
		}
		for _, kind := range snapshot.ComponentConditions {
			s.ControlPlane.Workload.Components[name] = append(s.ControlPlane.Workload.Components[name], snapshot.Component{Condition: kind})
		}
		s.tell(&m)
		s.Machines = append(s.Machines, m)
	}
	return s
}

// breaks makes a component of a Machine ill, since a while.
func (s *scope) breaks(machine int, kind string, ago time.Duration) {
	conditions.Set(&s.Machines[machine], metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: controlplanev1.NotHealthyReason, Message: "it crashes",
		LastTransitionTime: metav1.NewTime(s.Now.Add(-ago)),
	})
}

// unreachable is what a KubexmConfig says whose host does not answer.
var unreachable = metav1.Condition{
	Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.UnreachableReason, Message: "no route",
}

// unanswered has the hosts of Machines not answer any more, whose components are units: they are asked there alone.
func (s *scope) unanswered(machines ...int) {
	for _, i := range machines {
		m := &s.Machines[i]
		for j := range s.ControlPlane.Workload.Components[m.Name] {
			part := &s.ControlPlane.Workload.Components[m.Name][j]
			part.Unknown, part.Problem = true, "Unreachable: no route"
		}
		s.tell(m)
	}
}

func TestAvailable(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scope)
		want   metav1.ConditionStatus
		says   string // the message, or a part of it
	}{
		"all is well": {func(*scope) {}, metav1.ConditionTrue, ""},
		"a component of one Machine is ill": {func(s *scope) {
			s.breaks(0, snapshot.SchedulerPodHealthy, time.Minute)
		}, metav1.ConditionTrue, "* a: SchedulerPodHealthy: it crashes"},
		"since just now": {func(s *scope) { s.breaks(0, snapshot.SchedulerPodHealthy, time.Second) }, metav1.ConditionTrue, ""},
		"a Machine joins": {func(s *scope) {
			for _, kind := range snapshot.ComponentConditions {
				conditions.Set(&s.Machines[2], metav1.Condition{
					Type: kind, Status: metav1.ConditionUnknown, Reason: controlplanev1.HealthUnknownReason,
				})
			}
		}, metav1.ConditionTrue, ""},
		"etcd has two of three members": {func(s *scope) {
			s.breaks(0, snapshot.EtcdPodHealthy, time.Minute)
		}, metav1.ConditionTrue, "* a: EtcdPodHealthy: it crashes"},
		"etcd has no quorum": {func(s *scope) {
			s.breaks(0, snapshot.EtcdPodHealthy, time.Minute)
			s.breaks(1, snapshot.EtcdPodHealthy, time.Second)
		}, metav1.ConditionFalse, "1 of 3 etcd members are healthy, and quorum is 2\n* a: EtcdPodHealthy: it crashes\n* b:"},
		"one of two has left": {func(s *scope) {
			s.Machines = s.Machines[:2]
			s.breaks(0, snapshot.EtcdPodHealthy, time.Minute)
			config := bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			conditions.Set(&config, metav1.Condition{
				Type: bootstrapv1.HostResetCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.ResettingReason,
			})
			s.Configs = []bootstrapv1.KubexmConfig{config}
		}, metav1.ConditionTrue, ""},
		"each Machine lacks something": {func(s *scope) {
			s.breaks(0, snapshot.SchedulerPodHealthy, time.Minute)
			s.breaks(1, snapshot.APIServerPodHealthy, time.Minute)
			s.breaks(2, snapshot.ControllerManagerPodHealthy, time.Minute)
		}, metav1.ConditionFalse, "no control plane Machine has all of its components healthy\n* a: SchedulerPodHealthy: it crashes\n"},
		"a certificate authority is missing": {func(s *scope) { s.Certificates = errors.New("the Secret prod-ca is gone") },
			metav1.ConditionFalse, "CertificatesAvailable: the Secret prod-ca is gone"},
		"etcd's own hosts have quorum": {etcdHosts("", "it was changed", ""), metav1.ConditionTrue, "* e2: Drifted: it was changed"},
		"and have none":                {etcdHosts("off", "off", ""), metav1.ConditionFalse, "1 of 3 etcd members are healthy, and quorum is 2"},
		"no host answers": {func(s *scope) { s.unanswered(0, 1, 2) }, metav1.ConditionUnknown,
			"of no control plane Machine it is known that all of its components are healthy\n* a: APIServerPodHealthy: Unreachable: no route"},
		"no host answers, and it is not said why": {func(s *scope) {
			for i := range s.Machines {
				parts := s.ControlPlane.Workload.Components[s.Machines[i].Name]
				for j := range parts {
					parts[j].Unknown, parts[j].Problem = true, ""
				}
				s.tell(&s.Machines[i])
			}
		}, metav1.ConditionUnknown, "of no control plane Machine it is known"},
		"one host answers": {func(s *scope) { s.unanswered(0, 1) }, metav1.ConditionTrue, ""},
		"one host answers, and is ill": {func(s *scope) {
			s.unanswered(0, 1)
			s.breaks(2, snapshot.SchedulerPodHealthy, time.Minute)
		}, metav1.ConditionUnknown, "* c: SchedulerPodHealthy: it crashes"},
		"no host answers, and too many had none of etcd": {func(s *scope) {
			s.unanswered(0, 1, 2)
			s.breaks(0, snapshot.EtcdPodHealthy, time.Minute)
			s.breaks(1, snapshot.EtcdPodHealthy, time.Minute)
		}, metav1.ConditionFalse, "0 of 3 etcd members are healthy"},
		"etcd's own hosts do not answer": {func(s *scope) {
			etcdHosts("", "", "")(s)
			for i := range s.Configs {
				conditions.Set(&s.Configs[i], unreachable)
			}
		}, metav1.ConditionTrue, "* e1: Unreachable: no route"},
		"others run etcd": {func(s *scope) { s.Object.Spec.Cluster.Etcd.Type = spec.EtcdExternal }, metav1.ConditionTrue, ""},
		"it is not initialized": {func(s *scope) {
			s.Object.Status.Initialization.ControlPlaneInitialized = nil
			s.ControlPlane.Workload.Initialized = false
		},
			metav1.ConditionFalse, "Initialized"},
		"it is being deleted": {func(s *scope) {
			s.Object.DeletionTimestamp = ptr.To(metav1.Now())
			s.deleting = decision.Block(controlplanev1.WaitingForMachineDeletionReason, "2 Machines still exist")
		},
			metav1.ConditionFalse, "2 Machines still exist"},
	} {
		t.Run(name, func(t *testing.T) {
			s := availableScope()
			tc.change(s)
			s.describe()
			got := conditions.Get(s.Object, controlplanev1.AvailableCondition)
			if got.Status != tc.want || !strings.Contains(got.Message, tc.says) || tc.says == "" && got.Message != "" {
				t.Errorf("Available is %s %q, want %s %q", got.Status, got.Message, tc.want, tc.says)
			}
		})
	}
}

// etcdHosts gives the control plane etcd on hosts of its own, with what is wrong with each.
func etcdHosts(problems ...string) func(*scope) {
	return func(s *scope) {
		s.Object.Spec.Cluster.Etcd = spec.Etcd{Type: spec.EtcdKubexm}
		for i, problem := range problems {
			name := "e" + string(rune('1'+i))
			s.Object.Spec.Cluster.Etcd.Hosts.Names = append(s.Object.Spec.Cluster.Etcd.Hosts.Names, name)
			config := bootstrapv1.KubexmConfig{
				Spec: bootstrapv1.KubexmConfigSpec{HostRef: bootstrapv1.HostReference{Name: name, Role: spec.RoleEtcd}},
			}
			converged := metav1.Condition{
				Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.HostConvergedReason,
			}
			if problem != "" {
				converged.Status, converged.Reason, converged.Message = metav1.ConditionFalse, bootstrapv1.DriftedReason, problem
			}
			conditions.Set(&config, converged)
			s.Configs = append(s.Configs, config)
		}
	}
}

// TestSilenceIsNotFailure: what was seen of a cluster counts for five minutes after its API has ceased to answer.
func TestSilenceIsNotFailure(t *testing.T) {
	r, s := &KubexmControlPlaneReconciler{}, availableScope()
	begun := s.Now
	look := func(after time.Duration, failed error) {
		s.Now = begun.Add(after)
		s.ControlPlane.Workload = &snapshot.Workload{Initialized: failed == nil, Err: failed}
		if failed == nil {
			s.ControlPlane.Workload = availableScope().ControlPlane.Workload
		}
		s.silence = r.silence("1", failed == nil, s.Now)
		for i := range s.Machines {
			s.tell(&s.Machines[i])
		}
		s.describe()
	}
	expect := func(when string, status metav1.ConditionStatus) {
		t.Helper()
		for _, kind := range []string{
			controlplanev1.AvailableCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
			controlplanev1.EtcdClusterHealthyCondition,
		} {
			if got := conditions.Get(s.Object, kind); got.Status != status {
				t.Errorf("%s, %s is %s: %s", when, kind, got.Status, got.Message)
			}
		}
		if got := conditions.Get(&s.Machines[0], snapshot.APIServerPodHealthy); got.Status != status {
			t.Errorf("%s, the Machine's API server is %s: %s", when, got.Status, got.Message)
		}
	}
	down := errors.New("connection refused")
	look(0, nil)
	expect("at first", metav1.ConditionTrue)
	look(time.Second, down)
	expect("after one request that failed", metav1.ConditionTrue)
	look(4*time.Minute, down)
	expect("after four minutes", metav1.ConditionTrue)
	look(6*time.Minute, down)
	expect("after six minutes", metav1.ConditionUnknown)
	if message := conditions.GetMessage(s.Object, controlplanev1.AvailableCondition); message != "the API server has not answered for 6m0s: connection refused" {
		t.Errorf("it says %q", message)
	}
	look(7*time.Minute, nil)
	expect("when it answers", metav1.ConditionTrue)
}

// TestSilenceIsAskedLessOften: an API that does not answer for long is asked less and less often, at least once a minute; one of a cluster
// that has not begun may begin at any time.
func TestSilenceIsAskedLessOften(t *testing.T) {
	for _, tc := range []struct {
		silence time.Duration
		begun   bool
		want    time.Duration
	}{
		{time.Second, true, 2 * time.Second}, {59 * time.Second, true, 2 * time.Second}, {time.Minute, true, 6 * time.Second},
		{5 * time.Minute, true, 30 * time.Second}, {24 * time.Hour, true, time.Minute}, {24 * time.Hour, false, 2 * time.Second},
	} {
		s := availableScope()
		s.ControlPlane.Workload = &snapshot.Workload{Err: errors.New("connection refused")}
		s.Object.Status.Initialization.ControlPlaneInitialized = &tc.begun
		s.silence = tc.silence
		if got := s.next(); got != tc.want {
			t.Errorf("silent for %s, begun: %t: it is asked after %s, want %s", tc.silence, tc.begun, got, tc.want)
		}
	}
}

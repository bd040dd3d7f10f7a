// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// withEtcd has the etcd of a control plane that works asked on each host. It lists members with these addresses, by their names.
func withEtcd(s *scope, members ...string) {
	s.Configs = nil
	said := bootstrapv1.EtcdStatus{ObservedTime: metav1.NewMicroTime(s.Now)}
	addresses := map[string]string{"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3", "old": "10.0.0.9"}
	for _, name := range members {
		said.Members = append(said.Members, bootstrapv1.EtcdMemberStatus{
			ID: "1" + name, Name: name, PeerURL: "https://" + addresses[name] + ":2380", Type: bootstrapv1.EtcdVoter,
		})
	}
	for _, name := range []string{"a", "b", "c"} {
		config := bootstrapv1.KubexmConfig{}
		config.Name, config.Status.Host, config.Status.Etcd = name, bootstrapv1.HostStatus{Name: name, Address: addresses[name]}, said
		s.Configs = append(s.Configs, config)
	}
}

func TestEtcdConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		change      func(*scope)
		member      metav1.ConditionStatus // of b
		memberSays  string
		cluster     metav1.ConditionStatus
		clusterSays string
		available   metav1.ConditionStatus
	}{
		"all is well": {
			change: func(s *scope) {
				withEtcd(s, "a", "b", "c")
			}, member: metav1.ConditionTrue, cluster: metav1.ConditionTrue, available: metav1.ConditionTrue,
		},
		"it was never asked": {
			change: func(*scope) {}, member: metav1.ConditionUnknown, memberSays: "not been asked yet",
			cluster: metav1.ConditionTrue, available: metav1.ConditionTrue,
		},
		"one is no member": {
			change: func(s *scope) { withEtcd(s, "a", "c") }, member: metav1.ConditionFalse, memberSays: "no member on its host",
			cluster: metav1.ConditionFalse, clusterSays: "b: etcd lists no member on its host", available: metav1.ConditionTrue,
		},
		"two are none": {
			change: func(s *scope) { withEtcd(s, "a") }, member: metav1.ConditionFalse, memberSays: "no member on its host",
			cluster: metav1.ConditionFalse, clusterSays: "c: etcd lists no member on its host", available: metav1.ConditionFalse,
		},
		"one has no host": {
			change: func(s *scope) { withEtcd(s, "a", "b", "c", "old") }, member: metav1.ConditionTrue,
			cluster: metav1.ConditionFalse, clusterSays: `add "1old" to spec.cluster.etcd.goneMembers`, available: metav1.ConditionTrue,
		},
		"others run etcd": {
			change: func(s *scope) {
				withEtcd(s, "a")
				s.Object.Spec.Cluster.Etcd.Type = spec.EtcdExternal
			}, cluster: metav1.ConditionTrue, available: metav1.ConditionTrue,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := availableScope()
			conditions.Set(&s.Machines[1], metav1.Condition{Type: snapshot.EtcdMemberHealthy, Status: metav1.ConditionTrue, Reason: "FromBefore"})
			tc.change(s)
			for i := range s.Machines {
				s.tell(&s.Machines[i])
			}
			s.describe()
			got := conditions.Get(&s.Machines[1], snapshot.EtcdMemberHealthy)
			switch {
			case tc.member == "" && got != nil:
				t.Errorf("EtcdMemberHealthy is %v, and there is no member", got)
			case tc.member != "" && (got == nil || got.Status != tc.member || !strings.Contains(got.Message, tc.memberSays)):
				t.Errorf("EtcdMemberHealthy is %v, want %s %q", got, tc.member, tc.memberSays)
			}
			if got = conditions.Get(s.Object, controlplanev1.EtcdClusterHealthyCondition); got.Status != tc.cluster ||
				!strings.Contains(got.Message, tc.clusterSays) {
				t.Errorf("EtcdClusterHealthy is %v, want %s %q", got, tc.cluster, tc.clusterSays)
			}
			if got = conditions.Get(s.Object, controlplanev1.AvailableCondition); got.Status != tc.available {
				t.Errorf("Available is %v, want %s", got, tc.available)
			}
		})
	}
}

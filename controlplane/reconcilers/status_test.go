// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestHealthOfEtcd says that etcd is well where it is, and not only where control plane Machines have its members.
func TestHealthOfEtcd(t *testing.T) {
	host := func(status metav1.ConditionStatus) bootstrapv1.KubexmConfig {
		c := bootstrapv1.KubexmConfig{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "KubexmControlPlane", Controller: ptr.To(true)}}},
			Spec:       bootstrapv1.KubexmConfigSpec{HostRef: bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd}},
		}
		conditions.Set(&c, metav1.Condition{
			Type: bootstrapv1.HostConvergedCondition, Status: status, Reason: bootstrapv1.DriftedReason, Message: "etcd.service: failed",
		})
		return c
	}
	dedicated := spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"e1"}}}
	for name, tc := range map[string]struct {
		etcd       spec.Etcd
		configs    []bootstrapv1.KubexmConfig
		components []snapshot.Component
		want       metav1.ConditionStatus
		says       string
	}{
		"stacked and well": {components: []snapshot.Component{{Condition: snapshot.EtcdPodHealthy}}, want: metav1.ConditionTrue},
		"stacked and ill": {components: []snapshot.Component{{Condition: snapshot.EtcdPodHealthy, Problem: "no disk"}},
			want: metav1.ConditionFalse, says: "m: no disk"},
		"stacked, and its host does not answer": {
			components: []snapshot.Component{{Condition: snapshot.EtcdPodHealthy, Problem: "no route", Unknown: true}},
			want:       metav1.ConditionUnknown, says: "m: no route",
		},
		"one of its hosts does not answer": {etcd: dedicated, configs: []bootstrapv1.KubexmConfig{func() bootstrapv1.KubexmConfig {
			c := host(metav1.ConditionTrue)
			conditions.Set(&c, unreachable)
			return c
		}()}, want: metav1.ConditionUnknown, says: "e1: Unreachable: no route"},
		"stacked and not seen yet": {want: metav1.ConditionUnknown},
		"external":                 {etcd: spec.Etcd{Type: spec.EtcdExternal}, want: metav1.ConditionTrue},
		"on hosts of its own":      {etcd: dedicated, configs: []bootstrapv1.KubexmConfig{host(metav1.ConditionTrue)}, want: metav1.ConditionTrue},
		"one of its hosts is ill": {etcd: dedicated, configs: []bootstrapv1.KubexmConfig{host(metav1.ConditionFalse)},
			want: metav1.ConditionFalse, says: "e1: Drifted: etcd.service"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			s.Object.Spec.Cluster.Etcd, s.Configs = tc.etcd, tc.configs
			for i := range s.Configs {
				s.Configs[i].OwnerReferences[0].UID = s.Object.UID
			}
			s.ControlPlane.Workload = &snapshot.Workload{Initialized: true, Components: map[string][]snapshot.Component{"m": tc.components}}
			s.setHealth()
			got := conditions.Get(s.Object, controlplanev1.EtcdClusterHealthyCondition)
			if got.Status != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%s %q, want %s %q", got.Status, got.Message, tc.want, tc.says)
			}
		})
	}
}

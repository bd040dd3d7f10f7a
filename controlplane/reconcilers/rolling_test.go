// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
)

// rollingScope is a control plane of two that is to have v1.36.3.
func rollingScope(change ...func(a, b *clusterv1.Machine, c *bootstrapv1.KubexmConfig)) *scope {
	s := testScope()
	s.Object.Spec.Version, s.Object.Spec.Replicas = "v1.36.3", ptr.To[int32](2)
	var machines []clusterv1.Machine
	for _, name := range []string{"a", "b"} {
		machines = append(machines, clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
				OwnerReferences: []metav1.OwnerReference{desired.Owner(s.Object)},
			},
			Spec: clusterv1.MachineSpec{
				Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{Name: name}},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "KubexmMachine", Name: name},
			},
			Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: name}},
		})
	}
	config := bootstrapv1.KubexmConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: bootstrapv1.KubexmConfigStatus{KubernetesVersion: "v1.36.3"},
	}
	for _, c := range change {
		c(&machines[0], &machines[1], &config)
	}
	s.Machines, s.Configs = machines, []bootstrapv1.KubexmConfig{config}
	return s
}

func TestWhatIsSaidOfChanges(t *testing.T) {
	outdated := func(a, b *clusterv1.Machine, _ *bootstrapv1.KubexmConfig) {
		a.Spec.Version, b.Spec.Version = "v1.35.4", "v1.35.5"
	}
	for name, tc := range map[string]struct {
		scope   *scope
		blocked *decision.Blocker
		// upToDate is said of the Machine a, and the others of the control plane; "" is that nothing is on its way.
		upToDate, rollingOut, scalingUp string
	}{
		"nothing": {scope: rollingScope()},
		"a version": {
			scope: rollingScope(outdated), upToDate: "NotUpToDate: * Version v1.35.4, v1.36.3 required",
			rollingOut: "Rolling out 2 not up-to-date replicas\n* Version v1.35.4, v1.36.3 required\n* Version v1.35.5, v1.36.3 required",
		},
		"that waits": {
			scope: rollingScope(outdated), blocked: decision.Block(snapshot.MachineDeletingReason, "the Machine b is being deleted"),
			upToDate:   "NotUpToDate: * Version v1.35.4, v1.36.3 required",
			rollingOut: "Rolling out 2 not up-to-date replicas\n* Version v1.35.4, v1.36.3 required\n* Version v1.35.5, v1.36.3 required\n* Waiting: the Machine b is being deleted",
		},
		"a host that follows": {
			scope:      rollingScope(func(_, _ *clusterv1.Machine, c *bootstrapv1.KubexmConfig) { c.Status.KubernetesVersion = "v1.35.4" }),
			upToDate:   "Updating: * KubexmConfig.status.kubernetesVersion v1.35.4, v1.36.3 required",
			rollingOut: "Rolling out 1 not up-to-date replicas\n* KubexmConfig.status.kubernetesVersion v1.35.4, v1.36.3 required",
		},
		"a kubelet that follows": {
			scope: rollingScope(func(a, _ *clusterv1.Machine, _ *bootstrapv1.KubexmConfig) {
				a.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: "v1.35.4"}
			}),
			upToDate:   "Updating: * Node.status.nodeInfo.kubeletVersion v1.35.4, v1.36.3 required",
			rollingOut: "Rolling out 1 not up-to-date replicas\n* Node.status.nodeInfo.kubeletVersion v1.35.4, v1.36.3 required",
		},
		"a Machine without a host": {
			scope: rollingScope(func(_, b *clusterv1.Machine, _ *bootstrapv1.KubexmConfig) {
				b.Status.NodeRef.Name = ""
				conditions.Set(b, metav1.Condition{
					Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "NoHost", Message: "no host is free",
				})
			}),
			scalingUp: "the Machine b has no Node yet: no host is free",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.scope
			s.blocked = tc.blocked
			for i := range s.Machines {
				s.tell(&s.Machines[i])
			}
			s.describe()
			upToDate := ""
			if now := conditions.Get(&s.Machines[0], clusterv1.MachineUpToDateCondition); now.Status != metav1.ConditionTrue {
				upToDate = now.Reason + ": " + now.Message
			}
			for _, got := range []struct{ kind, got, want string }{
				{"UpToDate", upToDate, tc.upToDate},
				{"RollingOut", onlyTrue(s, controlplanev1.RollingOutCondition), tc.rollingOut},
				{"ScalingUp", onlyTrue(s, controlplanev1.ScalingUpCondition), tc.scalingUp},
			} {
				if got.got != got.want {
					t.Errorf("%s says\n%s\nand not\n%s", got.kind, got.got, got.want)
				}
			}
		})
	}
}

// onlyTrue is the message of a condition that is True.
func onlyTrue(s *scope, kind string) string {
	if now := conditions.Get(s.Object, kind); now.Status == metav1.ConditionTrue {
		return now.Message
	}
	return ""
}

// TestRecords has what was kept of a Machine read again, and nothing read that somebody else has written.
func TestRecords(t *testing.T) {
	kept := snapshot.Record{Machine: "a", Timestamp: metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)), RetryCount: 2}
	value, err := kept.Annotation()
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"machine":"a","timestamp":"2026-11-21T12:00:00Z","retryCount":2}`; value != want {
		t.Errorf("%s, and not %s, as Cluster API has it", value, want)
	}
	if got := snapshot.ParseRecord(value); got == nil || got.Machine != "a" || got.RetryCount != 2 || !got.Timestamp.Equal(&kept.Timestamp) {
		t.Errorf("read %+v", got)
	}
	for _, value := range []string{"", "true", "{}", `{"machine":3}`} {
		if got := snapshot.ParseRecord(value); got != nil {
			t.Errorf("%q was read as %+v", value, got)
		}
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// TestMaintenanceDefersRemediation: a Machine whose host is in maintenance is not replaced for being unhealthy, and says why.
func TestMaintenanceDefersRemediation(t *testing.T) {
	s := availableScope()
	s.Object.Spec.Remediation.ConvergeTimeoutSeconds, s.Object.Spec.Remediation.RebootTimeoutSeconds = ptr.To[int32](0), ptr.To[int32](0)
	withEtcd(s, "a", "b", "c")
	conditions.Set(&s.Configs[1], metav1.Condition{
		Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.HostInMaintenanceReason,
		Message: "the host b is in maintenance: a new disk",
	})
	var objects []client.Object
	for i := range s.Machines {
		m := &s.Machines[i]
		m.Namespace, m.UID, m.Labels[clusterv1.ClusterNameLabel] = "fleet", types.UID(m.Name), "prod"
		if m.Name == "b" {
			for _, kind := range []string{clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition} {
				conditions.Set(m, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "Unhealthy"})
			}
		}
		objects = append(objects, m)
	}
	r := testReconciler(t)
	r.Client = fake.NewClientBuilder().WithScheme(r.Client.Scheme()).WithObjects(append(objects, s.Object)...).
		WithStatusSubresource(&clusterv1.Machine{}).Build()
	r.Reader, r.Events = r.Client, events.NewFakeRecorder(10)
	if err := r.reconcileUnhealthyMachines(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	s.setRemediating(s.Own())
	got := conditions.Get(s.Object, controlplanev1.RemediatingCondition)
	if got.Status != metav1.ConditionTrue || !strings.Contains(got.Message, "Machine b: the host b is in maintenance: a new disk") {
		t.Errorf("Remediating is %s: %s", got.Status, got.Message)
	}
	left, err := machinesOf(t.Context(), r.Reader, s.Cluster)
	if err != nil || len(left) != 3 {
		t.Errorf("%d Machines are left (%v)", len(left), err)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestDeletionTrustsNoCache: a Machine that a cache does not show yet is deleted all the same.
func TestDeletionTrustsNoCache(t *testing.T) {
	of := testScope()
	own := &clusterv1.Machine{ObjectMeta: ofProd("a", clusterv1.MachineControlPlaneLabel)}
	own.OwnerReferences = []metav1.OwnerReference{desired.Owner(of.Object)}
	of.Object.Finalizers = []string{controlplanev1.ControlPlaneFinalizer}
	of.Object.DeletionTimestamp = ptr.To(metav1.Now())
	r := testReconciler(t, own)
	if _, err := r.reconcileDelete(t.Context(), of); err != nil { // whose snapshot has no Machines
		t.Fatal(err)
	}
	left, err := machinesOf(t.Context(), r.Reader, of.Cluster)
	if err != nil || len(left) > 0 || len(of.Object.Finalizers) == 0 {
		t.Errorf("%d Machines are left, and the finalizers are %v (%v)", len(left), of.Object.Finalizers, err)
	}
}

// TestDeletionGoesByPhases: a worker is waited for before a Machine is deleted, and Machines before hosts that are no Nodes are.
func TestDeletionGoesByPhases(t *testing.T) {
	of := testScope()
	worker, own := &clusterv1.Machine{ObjectMeta: ofProd("w")}, &clusterv1.Machine{ObjectMeta: ofProd("a", clusterv1.MachineControlPlaneLabel)}
	balancer := &bootstrapv1.KubexmConfig{ObjectMeta: ofProd("lb1")}
	balancer.Spec.HostRef = bootstrapv1.HostReference{Name: "lb1", Role: spec.RoleLoadBalancer}
	for _, object := range []metav1.Object{own, balancer} {
		object.SetOwnerReferences([]metav1.OwnerReference{desired.Owner(of.Object)})
	}
	of.Object.Finalizers = []string{controlplanev1.ControlPlaneFinalizer}
	r := testReconciler(t, worker, own, balancer)
	for i, want := range []string{
		controlplanev1.WaitingForWorkersDeletionReason, controlplanev1.WaitingForMachineDeletionReason,
		controlplanev1.WaitingForMachineDeletionReason, controlplanev1.DeletionCompletedReason,
	} {
		s := testScope()
		s.Object = of.Object.DeepCopy()
		s.Object.DeletionTimestamp = ptr.To(metav1.Now())
		var err error
		if s.Machines, err = machinesOf(t.Context(), r.Client, s.Cluster); err != nil {
			t.Fatal(err)
		}
		if s.Configs, err = configsOf(t.Context(), r.Client, s.Cluster); err != nil {
			t.Fatal(err)
		}
		result, err := r.reconcileDelete(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		s.describe()
		got := conditions.Get(s.Object, controlplanev1.DeletingCondition)
		if got == nil || got.Reason != want || (result.RequeueAfter > 0) != (i == 0) || (len(s.Object.Finalizers) == 0) != (i == 3) {
			t.Errorf("phase %d: Deleting is %v, %v, and the finalizers are %v", i, got, result, s.Object.Finalizers)
		}
		if left := len(s.Machines) + len(s.Configs); left != 3-i {
			t.Errorf("phase %d: %d objects were left before it, not %d", i, left, 3-i)
		}
		if i == 0 {
			if err := r.Client.Delete(t.Context(), worker); err != nil {
				t.Fatal(err)
			}
		}
	}
}

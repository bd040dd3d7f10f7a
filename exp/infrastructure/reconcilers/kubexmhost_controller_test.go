// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// TestQuarantineEnds: a host whose claim somebody has removed by hand is in quarantine, and is free when somebody ends that.
func TestQuarantineEnds(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, was := range map[string]infrav1.Quarantine{
		"put there then": {}, "put there before": {Reason: "BrokenFan", Message: "it is hot"},
	} {
		t.Run(name, func(t *testing.T) {
			h := aHost("n1")
			h.Spec.Quarantine = was
			h.Claim(infrav1.MachineReference{Name: "m", ClusterName: "prod"})
			h.MarkInUse()
			h.Spec.ClaimRef = infrav1.MachineReference{} // by hand
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&h).WithStatusSubresource(&h).Build()
			r := &KubexmHostReconciler{Options: Options{Client: c, Reader: c}}
			settled := func() *infrav1.KubexmHost {
				t.Helper()
				for range 5 { // each change is watched
					if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&h)}); err != nil {
						t.Fatal(err)
					}
				}
				is := &infrav1.KubexmHost{}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(&h), is); err != nil {
					t.Fatal(err)
				}
				return is
			}
			is := settled()
			if !is.IsQuarantined() || len(is.Finalizers) > 0 || conditions.GetReason(is, infrav1.CleanCondition) != infrav1.NotResetReason {
				t.Fatalf("quarantine %v, finalizers %v, Clean %v", is.Spec.Quarantine, is.Finalizers, conditions.Get(is, infrav1.CleanCondition))
			}
			is.Spec.Quarantine = infrav1.Quarantine{}
			if err := c.Update(t.Context(), is); err != nil {
				t.Fatal(err)
			}
			is = settled()
			if available := conditions.Get(is, infrav1.AvailableCondition); is.IsQuarantined() || available.Status != metav1.ConditionTrue {
				t.Errorf("quarantine %v, Available %v", is.Spec.Quarantine, available)
			}
		})
	}
}

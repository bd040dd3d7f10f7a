// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
)

// TestDeletedWhilePaused: Cluster API does not delete what is paused. What is paused here is unpaused then, and nothing else is.
func TestDeletedWhilePaused(t *testing.T) {
	scheme := testScheme(t)
	const ours = "kubexm in place v1.36.3"
	for _, c := range []struct {
		name, value string
		deleted     bool
		clusterToo  bool // is paused
		paused      bool
	}{
		{"by us", ours, true, false, false},
		{"by us, and it stays", ours, false, false, true},
		{"by somebody else", "", true, false, true},
		{"by us, and the Cluster by somebody", ours, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
			cluster.Spec.Paused = ptr.To(c.clusterToo)
			md := &clusterv1.MachineDeployment{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "fleet", Name: "workers", Finalizers: []string{clusterv1.MachineDeploymentFinalizer},
					Annotations: map[string]string{inplace.VersionAnnotation: "v1.36.3", clusterv1.PausedAnnotation: c.value},
				},
				Spec: clusterv1.MachineDeploymentSpec{ClusterName: "prod"},
			}
			if c.deleted {
				md.DeletionTimestamp = ptr.To(metav1.Now())
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, md).WithStatusSubresource(md).Build()
			r := &inplace.MachineDeploymentReconciler{Client: api, Reader: api, Events: events.NewFakeRecorder(10)}
			key := client.ObjectKeyFromObject(md)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), key, md); err != nil {
				t.Fatal(err)
			}
			if _, paused := md.Annotations[clusterv1.PausedAnnotation]; paused != c.paused {
				t.Errorf("its annotations are %v", md.Annotations)
			}
		})
	}
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// TestLeftAlone: what is paused, deleted, somebody else's or not asked for is not touched.
func TestLeftAlone(t *testing.T) {
	scheme := testScheme(t)
	for _, c := range []struct {
		name    string
		change  func(*clusterv1.Cluster, *clusterv1.MachineDeployment)
		touched bool
	}{
		{"it is asked for", func(*clusterv1.Cluster, *clusterv1.MachineDeployment) {}, true},
		{"the Cluster is paused", func(c *clusterv1.Cluster, _ *clusterv1.MachineDeployment) { c.Spec.Paused = ptr.To(true) }, false},
		{"the MachineDeployment is paused", func(_ *clusterv1.Cluster, md *clusterv1.MachineDeployment) {
			md.Annotations[clusterv1.PausedAnnotation] = ""
		}, false},
		{"another manager has it", func(_ *clusterv1.Cluster, md *clusterv1.MachineDeployment) { md.Labels = nil }, false},
		{"it is being deleted", func(_ *clusterv1.Cluster, md *clusterv1.MachineDeployment) {
			md.DeletionTimestamp, md.Finalizers = ptr.To(metav1.Now()), []string{"test/keep"}
		}, false},
		{"nobody asks for it", func(_ *clusterv1.Cluster, md *clusterv1.MachineDeployment) { md.Annotations = nil }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
			md := &clusterv1.MachineDeployment{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "fleet", Name: "workers", Labels: map[string]string{clusterv1.WatchLabel: "ours"},
					Annotations: map[string]string{inplace.VersionAnnotation: "v1.36.3"},
				},
				Spec: clusterv1.MachineDeploymentSpec{ClusterName: "prod"},
			}
			c.change(cluster, md)
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, md).WithStatusSubresource(md).Build()
			r := &inplace.MachineDeploymentReconciler{Client: api, Reader: api, WatchFilter: "ours", Events: events.NewFakeRecorder(10)}
			key := client.ObjectKeyFromObject(md)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), key, md); err != nil {
				t.Fatal(err)
			}
			if touched := conditions.Has(md, inplace.UpgradingCondition); touched != c.touched {
				t.Errorf("its conditions are %v", md.Status.Conditions)
			}
		})
	}
}

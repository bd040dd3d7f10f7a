// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/watch"
)

func cluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"},
		Spec: clusterv1.ClusterSpec{ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubexmControlPlane", Name: "prod-cp",
		}},
	}
}

func labelled(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "s", Labels: map[string]string{clusterv1.ClusterNameLabel: name},
	}}
}

func TestMaps(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster()).Build()
	group := schema.GroupKind{Group: "controlplane.cluster.x-k8s.io", Kind: "KubexmControlPlane"}
	reference := func(c *clusterv1.Cluster) clusterv1.ContractVersionedObjectReference { return c.Spec.ControlPlaneRef }
	ours, others := watch.Referred(group, reference), watch.Referred(schema.GroupKind{Group: group.Group, Kind: "KubeadmControlPlane"}, reference)
	found := []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: "fleet", Name: "prod-cp"}}}
	for name, tt := range map[string]struct{ got, want []ctrl.Request }{
		"a Cluster":                        {ours(t.Context(), cluster()), found},
		"a Cluster of another kind":        {others(t.Context(), cluster()), nil},
		"no Cluster":                       {ours(t.Context(), labelled("prod")), nil},
		"an object of the Cluster":         {watch.OfCluster(reader, ours)(t.Context(), labelled("prod")), found},
		"an object of a Cluster that went": {watch.OfCluster(reader, ours)(t.Context(), labelled("gone")), nil},
		"an object of none":                {watch.OfCluster(reader, ours)(t.Context(), labelled("")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClusterChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*clusterv1.Cluster)
		want   bool
	}{
		"nothing":        {func(*clusterv1.Cluster) {}, false},
		"a condition":    {func(c *clusterv1.Cluster) { c.Status.Conditions = []metav1.Condition{{Type: "Available"}} }, false},
		"the spec":       {func(c *clusterv1.Cluster) { c.Generation++ }, true},
		"infrastructure": {func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			changed := cluster()
			tt.change(changed)
			if got := watch.ClusterChanged().Update(event.UpdateEvent{ObjectOld: cluster(), ObjectNew: changed}); got != tt.want {
				t.Errorf("it is %v, want %v", got, tt.want)
			}
		})
	}
}

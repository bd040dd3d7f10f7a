// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// TestComponentsAreWrittenWhateverFails: a webhook that refuses the KubexmClusterConfig keeps no Machine's components unknown.
func TestComponentsAreWrittenWhateverFails(t *testing.T) {
	s := availableScope()
	seen := s.ControlPlane.Workload
	var objects []client.Object
	for i := range s.Machines {
		m := &s.Machines[i]
		m.Namespace, m.Labels[clusterv1.ClusterNameLabel], m.Status.Conditions = "fleet", "prod", nil
		objects = append(objects, m)
	}
	r := testReconciler(t)
	refused := errors.New("failed calling webhook: connection refused")
	r.Client = fake.NewClientBuilder().WithScheme(r.Client.Scheme()).WithObjects(append(objects, s.Object)...).
		WithStatusSubresource(&clusterv1.Machine{}).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return refused
		},
	}).Build()
	r.Reader = r.Client
	r.Workload = func(context.Context, secret.Value, *snapshot.ControlPlane) *snapshot.Workload { return seen }
	pairs, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	r.bringAll(t, &pairs)

	s.ControlPlane.Workload = nil
	if err := r.reconcileControlPlane(t.Context(), s); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(t.Context(), machines); err != nil {
		t.Fatal(err)
	}
	if len(machines.Items) != 3 {
		t.Fatalf("%d Machines", len(machines.Items))
	}
	for _, m := range machines.Items {
		for _, kind := range snapshot.ComponentConditions {
			if !conditions.IsTrue(&m, kind) {
				t.Errorf("%s says of %s: %v", m.Name, kind, conditions.Get(&m, kind))
			}
		}
	}
}

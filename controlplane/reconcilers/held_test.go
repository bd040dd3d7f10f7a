// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// TestHeldControlPlaneDecidesNothing: while a KubexmOperation holds the hosts, the cluster is observed and nothing else is written: no
// member, Machine or KubexmConfig is made, changed or deleted, and the KubexmControlPlane says why.
func TestHeldControlPlaneDecidesNothing(t *testing.T) {
	for name, held := range map[string]string{"it is held": "restore 0123456789abcdef", "it is not": ""} {
		t.Run(name, func(t *testing.T) {
			s := availableScope()
			seen := s.ControlPlane.Workload
			var objects []client.Object
			for i := range s.Machines {
				m := &s.Machines[i]
				m.Namespace, m.Labels[clusterv1.ClusterNameLabel] = "fleet", "prod"
				objects = append(objects, m)
			}
			pairs, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
			if err != nil {
				t.Fatal(err)
			}
			r, applied := testReconciler(t), errors.New("the members are written")
			r.Client = fake.NewClientBuilder().WithScheme(r.Client.Scheme()).WithObjects(append(objects, s.Object)...).
				WithStatusSubresource(&clusterv1.Machine{}).WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					return applied
				},
			}).Build()
			r.Reader = r.Client
			r.Workload = func(context.Context, secret.Value, *snapshot.ControlPlane) *snapshot.Workload { return seen }
			r.bringAll(t, &pairs)
			s.ControlPlane.Workload, s.held = nil, held
			if err := r.reconcileControlPlane(t.Context(), s); errors.Is(err, applied) == (held != "") {
				t.Fatalf("got %v", err)
			}
			if held == "" {
				return
			}
			if s.blocked == nil || s.blocked.Reason != bootstrapv1.HeldReason || s.next() != heldAgain {
				t.Errorf("it says %v, and looks again after %s", s.blocked, s.next())
			}
			machines := &clusterv1.MachineList{}
			if err := r.Client.List(t.Context(), machines); err != nil {
				t.Fatal(err)
			}
			leaves := func(m clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() }
			if len(machines.Items) != 3 || slices.ContainsFunc(machines.Items, leaves) {
				t.Errorf("there are %d Machines", len(machines.Items))
			}
		})
	}
}

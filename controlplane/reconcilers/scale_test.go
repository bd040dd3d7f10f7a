// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestNothingIsLeftOfHalfAMachine has the making of each of its parts fail although the part is made, as it may be when the
// process is asked to end.
func TestNothingIsLeftOfHalfAMachine(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"KubexmMachine", "KubexmConfig", "Machine"} {
		t.Run(kind, func(t *testing.T) {
			template := &infrav1.KubexmMachineTemplate{}
			template.Namespace, template.Name = "fleet", "any"
			ended, failed := errors.New("the process is asked to end"), false
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(template).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if err := c.Create(ctx, o, options...); err != nil {
						return err
					}
					if gvk, err := c.GroupVersionKindFor(o); err != nil || gvk.Kind == kind {
						failed = true
						return ended
					}
					return nil
				},
			}).Build()
			r := &KubexmControlPlaneReconciler{Client: c, Reader: c, Events: events.NewFakeRecorder(10)}
			from := &unstructured.Unstructured{}
			from.SetGroupVersionKind(infrav1.GroupVersion.WithKind("KubexmMachineTemplate"))
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(template), from); err != nil {
				t.Fatal(err)
			}
			err := r.create(t.Context(), testScope(), from, snapshot.Decision{Create: true, BootstrapMode: spec.BootstrapInit})
			if !errors.Is(err, ended) || !failed {
				t.Fatalf("got %v", err)
			}
			for _, list := range []client.ObjectList{&infrav1.KubexmMachineList{},
				&bootstrapv1.KubexmConfigList{}, &clusterv1.MachineList{}} {
				if err := c.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				if left := meta.LenList(list); left > 0 {
					t.Errorf("%d are left in the %T", left, list)
				}
			}
		})
	}
}

// TestRecordGoesOn: a Machine that is made soon after an unhealthy one was replaced has the record of that, whatever it is made for.
func TestRecordGoesOn(t *testing.T) {
	s := testScope()
	s.Now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	s.Object.Status.LastRemediation = controlplanev1.LastRemediation{
		Machine: "b", Time: metav1.NewTime(s.Now.Add(-time.Minute)), RetryCount: ptr.To[int32](2),
	}
	r := testReconciler(t)
	if err := infrav1.AddToScheme(r.Client.Scheme()); err != nil {
		t.Fatal(err)
	}
	template := &infrav1.KubexmMachineTemplate{}
	template.Namespace, template.Name = "fleet", "any"
	r.Client = fake.NewClientBuilder().WithScheme(r.Client.Scheme()).WithObjects(template).Build()
	r.Reader, r.Events = r.Client, events.NewFakeRecorder(10)
	from := &unstructured.Unstructured{}
	from.SetGroupVersionKind(infrav1.GroupVersion.WithKind("KubexmMachineTemplate"))
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(template), from); err != nil {
		t.Fatal(err)
	}
	if err := r.create(t.Context(), s, from, snapshot.Decision{Create: true, BootstrapMode: spec.BootstrapJoin}); err != nil {
		t.Fatal(err)
	}
	got := snapshot.ParseRecord(s.Machines[0].Annotations[controlplanev1.RemediationForAnnotation])
	if got == nil || got.Machine != "b" || got.RetryCount != 2 {
		t.Errorf("the record is %+v", got)
	}
}

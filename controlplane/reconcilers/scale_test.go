// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/contract"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
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

// TestOthersAreNotCleanedUp: what has the name of a part of a new Machine already is somebody else's, and stays.
func TestOthersAreNotCleanedUp(t *testing.T) {
	for kind, list := range map[string]client.ObjectList{
		"KubexmMachine": &infrav1.KubexmMachineList{}, "KubexmConfig": &bootstrapv1.KubexmConfigList{}, "Machine": &clusterv1.MachineList{},
	} {
		t.Run(kind, func(t *testing.T) {
			r, from := creator(t, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if gvk, err := c.GroupVersionKindFor(o); err == nil && gvk.Kind == kind {
						other, ok := o.DeepCopyObject().(client.Object)
						if !ok {
							return errors.New("it is no object")
						}
						if err := c.Create(ctx, other); err != nil {
							return err
						}
					}
					return c.Create(ctx, o, options...)
				},
			})
			err := r.create(t.Context(), testScope(), from, snapshot.Decision{Create: true, BootstrapMode: spec.BootstrapInit})
			if !apierrors.IsAlreadyExists(err) {
				t.Fatalf("got %v", err)
			}
			for _, of := range []client.ObjectList{&infrav1.KubexmMachineList{},
				&bootstrapv1.KubexmConfigList{}, &clusterv1.MachineList{}} {
				if err := r.Client.List(t.Context(), of); err != nil {
					t.Fatal(err)
				}
				want := 0
				if reflect.TypeOf(of) == reflect.TypeOf(list) {
					want = 1
				}
				if left := meta.LenList(of); left != want {
					t.Errorf("%d are left in the %T, not %d", left, of, want)
				}
			}
		})
	}
}

// TestOutdatedIsSaidFirst: that Machines are outdated is written before there is another one: its host is chosen by that.
func TestOutdatedIsSaidFirst(t *testing.T) {
	s := availableScope()
	s.Object.Spec.Version = "v1.36.3"
	said := ""
	r, from := creator(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, is := o.(*clusterv1.Machine); is && o.GetName() != "a" {
				old := &clusterv1.Machine{}
				if err := c.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "a"}, old); err != nil {
					return err
				}
				said = conditions.GetMessage(old, clusterv1.MachineUpToDateCondition)
			}
			return c.Create(ctx, o, options...)
		},
	})
	s.Machines = s.Machines[:1]
	s.Machines[0].Namespace, s.Machines[0].Spec.Version = "fleet", "v1.35.4"
	if err := r.Client.Create(t.Context(), &s.Machines[0]); err != nil {
		t.Fatal(err)
	}
	if err := r.create(t.Context(), s, from, snapshot.Decision{Create: true, BootstrapMode: spec.BootstrapJoin}); err != nil {
		t.Fatal(err)
	}
	if said != "* Version v1.35.4, v1.36.3 required" {
		t.Errorf("when the new Machine was made, the old one said %q", said)
	}
}

// creator is a reconciler whose client does this, and a template to make Machines from.
func creator(t *testing.T, funcs interceptor.Funcs) (*KubexmControlPlaneReconciler, *unstructured.Unstructured) {
	t.Helper()
	r := testReconciler(t)
	if err := infrav1.AddToScheme(r.Client.Scheme()); err != nil {
		t.Fatal(err)
	}
	template := &infrav1.KubexmMachineTemplate{}
	template.Namespace, template.Name = "fleet", "any"
	r.Client = fake.NewClientBuilder().WithScheme(r.Client.Scheme()).WithObjects(template).WithStatusSubresource(&clusterv1.Machine{}).
		WithInterceptorFuncs(funcs).Build()
	r.Reader, r.Events = r.Client, events.NewFakeRecorder(10)
	from := &unstructured.Unstructured{}
	from.SetGroupVersionKind(infrav1.GroupVersion.WithKind("KubexmMachineTemplate"))
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(template), from); err != nil {
		t.Fatal(err)
	}
	return r, from
}

// TestTemplateComesLater: a control plane whose template does not exist is reconciled again, though nobody reports that it does.
func TestTemplateComesLater(t *testing.T) {
	s := testScope()
	s.Cluster.UID = "2"
	s.Object.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: s.Cluster.Name, UID: s.Cluster.UID,
	}}
	s.Object.Finalizers = []string{controlplanev1.ControlPlaneFinalizer}
	s.Object.Spec.Version = "v1.36.3"
	s.Object.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: "any",
	}
	s.Object.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.PausedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.NotPausedReason,
	}}
	r := testReconciler(t)
	if err := errors.Join(infrav1.AddToScheme(r.Client.Scheme()), apiextensionsv1.AddToScheme(r.Client.Scheme())); err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = contract.CalculateCRDName(infrav1.GroupVersion.Group, "KubexmMachineTemplate")
	definition.Labels = map[string]string{clusterv1.GroupVersion.String(): infrav1.GroupVersion.Version}
	r.Client = fake.NewClientBuilder().WithScheme(r.Client.Scheme()).WithObjects(s.Object, s.Cluster, definition).
		WithStatusSubresource(s.Object).Build()
	r.Reader, r.Events, r.Clock = r.Client, events.NewFakeRecorder(10), clock.RealClock{}
	var result ctrl.Result
	for range 3 { // what the first writes is a reason of its own to reconcile again
		var err error
		if result, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.Object)}); err != nil {
			t.Fatal(err)
		}
	}
	if result.RequeueAfter <= 0 {
		t.Error("it waits for somebody to report it")
	}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.Object), s.Object); err != nil {
		t.Fatal(err)
	}
	const want = "the KubexmMachineTemplate any does not exist"
	if said := conditions.GetMessage(s.Object, controlplanev1.ScalingUpCondition); !strings.Contains(said, want) {
		t.Errorf("ScalingUp says %q, want %q", said, want)
	}
}

// TestRecordGoesOn: a Machine that is made soon after an unhealthy one was replaced has the record of that, whatever it is made for.
func TestRecordGoesOn(t *testing.T) {
	s := testScope()
	s.Now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	s.Object.Status.LastRemediation = controlplanev1.LastRemediation{
		Machine: "b", Time: metav1.NewTime(s.Now.Add(-time.Minute)), RetryCount: ptr.To[int32](2),
	}
	r, from := creator(t, interceptor.Funcs{})
	if err := r.create(t.Context(), s, from, snapshot.Decision{Create: true, BootstrapMode: spec.BootstrapJoin}); err != nil {
		t.Fatal(err)
	}
	got := snapshot.ParseRecord(s.Machines[0].Annotations[controlplanev1.RemediationForAnnotation])
	if got == nil || got.Machine != "b" || got.RetryCount != 2 {
		t.Errorf("the record is %+v", got)
	}
}

// TestDiscard: what was to be a Machine's and is nobody's goes, and what has its name alone stays.
func TestDiscard(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*infrav1.KubexmMachine)
		stays  bool
	}{
		"made with the KubexmConfig": {change: func(*infrav1.KubexmMachine) {}},
		"another control plane's": {stays: true, change: func(m *infrav1.KubexmMachine) {
			m.Labels[clusterv1.MachineControlPlaneNameLabel] = "other"
		}},
		"without labels": {stays: true, change: func(m *infrav1.KubexmMachine) { m.Labels = nil }},
		"a Machine's": {stays: true, change: func(m *infrav1.KubexmMachine) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "left", UID: "u"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, from := creator(t, interceptor.Funcs{})
			s := testScope()
			config := desired.Config(s.ControlPlane, "left", spec.BootstrapJoin)
			machine := &infrav1.KubexmMachine{}
			machine.Namespace, machine.Name, machine.Labels = "fleet", "left", desired.Labels(s.ControlPlane)
			c.change(machine)
			for _, o := range []client.Object{config, machine} {
				if err := r.Client.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.discard(t.Context(), s, from); err != nil {
				t.Fatal(err)
			}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(config), config); !apierrors.IsNotFound(err) {
				t.Errorf("the KubexmConfig: %v", err)
			}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); apierrors.IsNotFound(err) == c.stays {
				t.Errorf("the KubexmMachine: %v, want it to stay: %t", err, c.stays)
			}
		})
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package objects_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/testapi"
)

// TestTargetsOfStoredObjects: what an API server makes of a config's objects, by its schemas and their defaults, declares the same hosts.
func TestTargetsOfStoredObjects(t *testing.T) {
	environment, err := testapi.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	}()
	scheme := runtime.NewScheme()
	api, err := client.New(environment.Config, client.Options{Scheme: scheme})
	if err := errors.Join(err, clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme), bootstrapv1.AddToScheme(scheme),
		controlplanev1.AddToScheme(scheme), infrav1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	// Webhooks set what targets have by default, and nobody serves them here.
	for _, hooks := range []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}} {
		if err := api.DeleteAllOf(t.Context(), hooks); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for name, c := range kinds(t) {
		n++
		namespace := fmt.Sprintf("kind-%d", n)
		t.Run(name, func(t *testing.T) {
			if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
				t.Fatal(err)
			}
			all := objects.Of(c, inputs(c, namespace))
			want, err := objects.Targets(all)
			if err != nil {
				t.Fatal(err)
			}
			var stored []client.Object
			for _, object := range all {
				if _, secret := object.(*corev1.Secret); secret {
					continue
				}
				if d, is := object.(*clusterv1.MachineDeployment); is { // as Cluster API's webhook does
					d.Spec.Selector.MatchLabels = map[string]string{clusterv1.MachineDeploymentNameLabel: d.Name}
					d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
				}
				if err := api.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
				read, ok := object.DeepCopyObject().(client.Object)
				if !ok {
					t.Fatalf("%T is no object", object)
				}
				if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), read); err != nil {
					t.Fatal(err)
				}
				stored = append(stored, read)
			}
			got, err := objects.Targets(stored)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("targets (-of the config +of what is stored):\n%s", diff)
			}
		})
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package rollout_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/testapi"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestTakeInIsAccepted: an API server takes KubexmMachines that name their hosts, those that are made and one that waited for any.
func TestTakeInIsAccepted(t *testing.T) {
	environment, err := testapi.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	}()
	api, err := client.New(environment.Config, client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, hooks := range []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{}, // nobody serves them here
		&admissionregistrationv1.ValidatingWebhookConfiguration{}} {
		if err := api.DeleteAllOf(t.Context(), hooks); err != nil {
			t.Fatal(err)
		}
	}
	all := declared(t)
	for _, object := range all {
		switch o := object.(type) {
		case *clusterv1.MachineDeployment: // as Cluster API's webhook does
			o.Spec.Selector.MatchLabels = map[string]string{clusterv1.MachineDeploymentNameLabel: o.Name}
			o.Spec.Template.Labels = o.Spec.Selector.MatchLabels
		case *infrav1.KubexmHost:
			o.Spec.Access.HostKeys.Pinned = []string{"SHA256:uNiVztksCsDhcc0u9e8BrrJXVGjTbjZ3fOQpyE0VrVk"}
		}
	}
	if _, err := rollout.Apply(t.Context(), api, all); err != nil {
		t.Fatal(err)
	}
	meta := func(labels map[string]string) metav1.ObjectMeta {
		labels[clusterv1.ClusterNameLabel] = "prod"
		return metav1.ObjectMeta{Namespace: "default", Name: "begun", Labels: labels}
	}
	for _, object := range []client.Object{
		&bootstrapv1.KubexmConfig{
			ObjectMeta: meta(map[string]string{}), Spec: bootstrapv1.KubexmConfigSpec{BootstrapMode: spec.BootstrapInit},
		},
		&infrav1.KubexmMachine{ObjectMeta: meta(map[string]string{}), Spec: infrav1.KubexmMachineSpec{
			HostSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Preferences:  []infrav1.HostPreference{{Weight: 1, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"c": "d"}}}},
		}},
		&clusterv1.Machine{ObjectMeta: meta(map[string]string{clusterv1.MachineControlPlaneLabel: ""}), Spec: clusterv1.MachineSpec{
			ClusterName: "prod", Version: "v1.36.3",
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfig", Name: "begun",
			}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachine", Name: "begun",
			},
		}},
	} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := rollout.TakeIn(t.Context(), api, all, []string{"cp1", "cp2", "cp3"}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := rollout.Read(t.Context(), api, client.ObjectKey{Namespace: "default", Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for i := range s.InfraMachines {
		m := &s.InfraMachines[i].Spec
		if names[m.HostName] = true; m.HostSelector != nil || m.Preferences != nil {
			t.Errorf("%s: a choice beside a name: %+v", s.InfraMachines[i].Name, m)
		}
	}
	if diff := cmp.Diff(map[string]bool{"cp1": true, "cp2": true, "cp3": true}, names); diff != "" || len(s.Machines) != 3 {
		t.Errorf("%d Machines; hosts that are named (-want +got):\n%s", len(s.Machines), diff)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
)

func foreign(spec, status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "ForeignMachine",
		"metadata": map[string]any{"namespace": "fleet", "name": "m"}, "spec": spec, "status": status,
	}}
}

func addresses(pairs ...string) []any {
	var all []any
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, map[string]any{"type": pairs[i], "address": pairs[i+1]})
	}
	return all
}

func TestGenericHost(t *testing.T) {
	ssh := bootstrapv1.SSH{User: "ops", Port: 2222, CredentialsRef: bootstrapv1.CredentialsReference{Name: "ssh"}, HostKeys: []string{"SHA256:x"}}
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		ssh    bootstrapv1.SSH
		want   *infra.Host
		err    any
	}{
		"addresses before it is provisioned": {
			object: foreign(map[string]any{"providerID": "foreign://m"}, map[string]any{"addresses": addresses(
				"Hostname", "Node-1", "InternalIP", "fe80::1", "InternalIP", "10.0.0.5", "ExternalIP", "203.0.113.5")}),
			ssh: ssh,
			want: &infra.Host{
				Name: "node-1", ProviderID: "foreign://m", Address: "203.0.113.5", Port: 2222, Internal: []string{"10.0.0.5"},
				User: "ops", Credentials: "ssh", HostKeys: []string{"SHA256:x"},
			},
		},
		"addresses of both families": {
			object: foreign(nil, map[string]any{"addresses": addresses(
				"InternalIP", "FD00::5", "InternalIP", "10.0.0.5", "ExternalIP", "2001:db8::5")}),
			ssh: ssh,
			want: &infra.Host{
				Name: "prod-x", Address: "10.0.0.5", Port: 2222, Internal: []string{"fd00::5", "10.0.0.5"},
				User: "ops", Credentials: "ssh", HostKeys: []string{"SHA256:x"},
			},
		},
		"no address yet":     {object: foreign(nil, nil), ssh: ssh, err: new(*infra.NotYet)},
		"no way to log in":   {object: foreign(nil, nil), err: new(*infra.NotYet)},
		"the object is gone": {ssh: ssh, err: new(*infra.Lost)},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(apiextensionsv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			// Cluster API finds the version of a kind by the labels of its definition.
			definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
				Name: "foreignmachines.infrastructure.cluster.x-k8s.io", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"},
			}}
			b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(definition)
			if tc.object != nil {
				b = b.WithObjects(tc.object)
			}
			machine := &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-x"},
				Spec: clusterv1.MachineSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "ForeignMachine", Name: "m",
				}},
			}
			config := &bootstrapv1.KubexmConfig{Spec: bootstrapv1.KubexmConfigSpec{SSH: tc.ssh}}
			c := b.Build()
			got, err := infra.Of(machine, c, c).Host(t.Context(), infra.Subject{Machine: machine, Config: config})
			if tc.err != nil {
				if !errors.As(err, tc.err) {
					t.Errorf("got %v (%T), want %T", err, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

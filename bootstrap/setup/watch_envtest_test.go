// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// noticed is how long a change that is watched may take to be seen: less than anything is read again that is not.
const noticed = 30 * time.Second

// foreignMachines are a kind of another provider.
const foreignMachines = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foreignmachines.infrastructure.cluster.x-k8s.io
  labels: {cluster.x-k8s.io/v1beta2: v1}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: ForeignMachine, listKind: ForeignMachineList, plural: foreignmachines, singular: foreignmachine}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func (f *fleet) parse(document string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	f.Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(Succeed())
	return object
}

// waiting is why a KubexmConfig has no host yet, "" if it waits for none.
func (f *fleet) waiting(name string) func() string {
	return func() string {
		config := &bootstrapv1.KubexmConfig{}
		err := f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, config)
		if err != nil || conditions.GetReason(config, bootstrapv1.HostReachableCondition) != bootstrapv1.WaitingForHostReason {
			return ""
		}
		return conditions.GetMessage(config, bootstrapv1.HostReachableCondition)
	}
}

// TestProvidersInAnyOrder: a provider that is installed when its Machine waits already is asked at once, and each change of what it says
// of the host is followed, also while it has paused its object.
func TestProvidersInAnyOrder(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2)
	defer f.explain()
	f.declare()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Spec: clusterv1.MachineSpec{
		ClusterName: "prod", Version: version,
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "ForeignMachine", Name: "late"},
		Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfig", Name: "late",
		}},
	}}
	f.create(&bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, machine)
	f.Eventually(f.waiting("late"), patience, 50*time.Millisecond).Should(ContainSubstring("knows no ForeignMachine"))

	t.Log("the provider is installed")
	f.Expect(f.api.Create(t.Context(), f.parse(foreignMachines))).To(Succeed())
	f.Eventually(f.waiting("late"), noticed, 50*time.Millisecond).Should(ContainSubstring("the ForeignMachine late does not exist"))

	t.Log("its machine is there")
	foreign := f.parse("{apiVersion: infrastructure.cluster.x-k8s.io/v1, kind: ForeignMachine, metadata: {name: late}}")
	foreign.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: ""})
	foreign.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: machine.Name, UID: machine.UID,
	}})
	f.Eventually(func() error {
		foreign.SetNamespace(namespace)
		return f.api.Create(t.Context(), foreign)
	}, noticed, 50*time.Millisecond).Should(Succeed())
	f.Eventually(f.waiting("late"), noticed, 50*time.Millisecond).Should(ContainSubstring("the ForeignMachine late has no address yet"))

	t.Log("it has an address")
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"status":{"addresses":[{"type":"InternalIP","address":"10.1.0.99"}]}}`))
	f.Expect(f.api.Status().Patch(t.Context(), foreign, patch)).To(Succeed())
	f.Eventually(f.waiting("late"), noticed, 50*time.Millisecond).Should(BeEmpty())
}

// TestHostsThatComeLater: a host that etcd was given by name is claimed when it is there.
func TestHostsThatComeLater(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2)
	defer f.explain()
	f.declare(func(c *controlplanev1.KubexmControlPlane) {
		c.Spec.Cluster.Etcd = spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"etcd1"}}}
	})
	name := ""
	f.Eventually(func() string {
		for _, c := range f.configs() {
			if c.Spec.HostRef.Name == "etcd1" {
				name = c.Name
			}
		}
		return f.waiting(name)()
	}, patience, 50*time.Millisecond).Should(ContainSubstring("the KubexmHost etcd1 does not exist"))

	h := &infrav1.KubexmHost{ObjectMeta: metav1.ObjectMeta{Name: "etcd1"}, Spec: infrav1.KubexmHostSpec{Address: "10.1.0.99", Access: access()}}
	h.Spec.Maintenance.Message = "new disks"
	f.create(h)
	f.Eventually(f.waiting(name), noticed, 50*time.Millisecond).Should(ContainSubstring("the KubexmHost etcd1 is in maintenance: new disks"))

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"maintenance":null}}`))
	f.Expect(f.api.Patch(t.Context(), h, patch)).To(Succeed())
	f.Eventually(func(g Gomega) {
		g.Expect(f.api.Get(t.Context(), client.ObjectKeyFromObject(h), h)).To(Succeed())
		g.Expect(h.Spec.ClaimRef.Name).To(Equal(name))
	}, noticed, 50*time.Millisecond).Should(Succeed()) // it is dialled next, and nobody is there
}

// TestSecretsAreWatched: a host that waits for its cluster's certificate authority goes on as soon as that is there.
func TestSecretsAreWatched(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2, func(f *fleet) { f.lookEvery = time.Hour })
	defer f.explain()
	f.declare()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))

	ca := &corev1.Secret{}
	f.Expect(f.api.Get(t.Context(),
		client.ObjectKey{Namespace: namespace, Name: capisecret.Name("prod", capisecret.ClusterCA)}, ca)).To(Succeed())
	f.Expect(f.api.Delete(t.Context(), ca)).To(Succeed())
	f.Eventually(f.readyConfigs, noticed, 50*time.Millisecond).Should(Equal(0))
	ca.ResourceVersion, ca.UID = "", ""
	f.Expect(f.api.Create(t.Context(), ca)).To(Succeed())
	f.Eventually(f.readyConfigs, noticed, 50*time.Millisecond).Should(Equal(2))
}

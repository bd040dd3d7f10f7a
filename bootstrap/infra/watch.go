// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watched are the kinds whose changes matter to a Machine of this infrastructure: that of its infrastructureRef, and those behind it. There
// is none for KubexmMachines, which are watched by their type. Those of an IPAM are not: it has given its addresses before the host is
// provisioned.
func Watched(machine *clusterv1.Machine) []schema.GroupKind {
	switch kind := machine.Spec.InfrastructureRef.GroupKind(); kind {
	case machineKind.GroupKind():
		return nil
	case byoMachineKind:
		return []schema.GroupKind{kind, byoHostKind}
	case metal3MachineKind:
		return []schema.GroupKind{kind, bareMetalHostKind.GroupKind()}
	default:
		return []schema.GroupKind{kind}
	}
}

// MachineOf is the Machine that an object of a watched kind is about: the owner of an infrastructure machine, or of the one that has the
// ByoHost or the BareMetalHost. The object is unstructured, as all of kinds are that we have no types of. It is false if there is none, or
// none that can be found.
func MachineOf(ctx context.Context, reader client.Reader, object client.Object) (client.ObjectKey, bool) {
	switch object.GetObjectKind().GroupVersionKind().GroupKind() {
	case byoHostKind:
		// The name of a namespace has no dots.
		namespace, name, found := strings.Cut(object.GetLabels()[byoMachineLabel], ".")
		if !found {
			return client.ObjectKey{}, false
		}
		return ownerOf(ctx, reader, byoMachineKind, client.ObjectKey{Namespace: namespace, Name: name})
	case bareMetalHostKind.GroupKind():
		host, ok := object.(*unstructured.Unstructured)
		if !ok {
			return client.ObjectKey{}, false
		}
		read, err := decode[bareMetalHost](host)
		if err != nil || !read.Spec.ConsumerRef.isOf(metal3MachineKind) {
			return client.ObjectKey{}, false
		}
		return ownerOf(ctx, reader, metal3MachineKind, read.Spec.ConsumerRef.key(object.GetNamespace()))
	}
	return owner(object)
}

// ownerOf is the Machine that an infrastructure machine belongs to.
func ownerOf(ctx context.Context, reader client.Reader, kind schema.GroupKind, key client.ObjectKey) (client.ObjectKey, bool) {
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: key.Name}
	object, err := external.GetObjectFromContractVersionedRef(ctx, reader, ref, key.Namespace)
	if err != nil {
		return client.ObjectKey{}, false
	}
	return owner(object)
}

func owner(object client.Object) (client.ObjectKey, bool) {
	for _, ref := range object.GetOwnerReferences() {
		if kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind); kind.Group == clusterv1.GroupVersion.Group && kind.Kind == "Machine" {
			return client.ObjectKey{Namespace: object.GetNamespace(), Name: ref.Name}, true
		}
	}
	return client.ObjectKey{}, false
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watched are the kinds whose changes matter to whoever has this Machine's host: that of its infrastructureRef, and those behind it. The
// Machine is nil where a KubexmConfig names its KubexmHost itself. Some of the kinds may not be installed, an IPAM's for one.
func Watched(machine *clusterv1.Machine) []schema.GroupKind {
	if machine == nil {
		return []schema.GroupKind{hostKind}
	}
	switch kind := machine.Spec.InfrastructureRef.GroupKind(); kind {
	case machineKind.GroupKind():
		return []schema.GroupKind{kind, hostKind}
	case byoMachineKind:
		return []schema.GroupKind{kind, byoHostKind}
	case metal3MachineKind:
		all := []schema.GroupKind{kind, bareMetalHostKind.GroupKind(), metal3DataGroupKind}
		for _, from := range ipams {
			all = append(all, from.claim.GroupKind(), from.address.GroupKind())
		}
		return all
	default:
		return []schema.GroupKind{kind}
	}
}

// mostBehind is how many objects may be between a watched one and its Machine: an IPAddress has a claim, that Metal3Data, these a
// Metal3Machine.
const mostBehind = 3

// MachineOf is the Machine that an object of a watched kind is about: the owner of an infrastructure machine, or of the one that has the
// ByoHost, the BareMetalHost or the address. The object is unstructured, as all of kinds are that we have no types of. It is false if there
// is none, or none any more; the error is that of a read.
func MachineOf(ctx context.Context, reader client.Reader, object client.Object) (client.ObjectKey, bool, error) {
	for range mostBehind {
		kind, key, found := behind(object)
		if !found {
			break
		}
		next, err := read(ctx, reader, kind, key)
		if apierrors.IsNotFound(err) {
			return client.ObjectKey{}, false, nil
		} else if err != nil {
			return client.ObjectKey{}, false, fmt.Errorf("get the %s %s: %w", kind.Kind, key, err)
		}
		object = next
	}
	key, found := owner(object)
	return key, found, nil
}

// behind is the object that another one is about. It has no version where Cluster API's contract says which.
func behind(object client.Object) (schema.GroupVersionKind, client.ObjectKey, bool) {
	kind, namespace := object.GetObjectKind().GroupVersionKind().GroupKind(), object.GetNamespace()
	switch kind {
	case byoHostKind:
		// The name of a namespace has no dots.
		namespace, name, found := strings.Cut(object.GetLabels()[byoMachineLabel], ".")
		return byoMachineKind.WithVersion(""), client.ObjectKey{Namespace: namespace, Name: name}, found
	case bareMetalHostKind.GroupKind():
		host, err := decoded[bareMetalHost](object)
		if err != nil || !host.Spec.ConsumerRef.isOf(metal3MachineKind) {
			return schema.GroupVersionKind{}, client.ObjectKey{}, false
		}
		return metal3MachineKind.WithVersion(""), host.Spec.ConsumerRef.key(namespace), true
	case metal3DataGroupKind:
		_, key, found := ownerOfKind(object, metal3MachineKind)
		return metal3MachineKind.WithVersion(""), key, found
	}
	for _, from := range ipams {
		switch kind {
		case from.claim.GroupKind():
			return ownerOfKind(object, metal3DataGroupKind)
		case from.address.GroupKind():
			address, err := decoded[claimedAddress](object)
			if err != nil {
				return schema.GroupVersionKind{}, client.ObjectKey{}, false
			}
			name := cmp.Or(address.Spec.Claim.Name, address.Spec.ClaimRef.Name)
			return from.claim, client.ObjectKey{Namespace: namespace, Name: name}, name != ""
		}
	}
	return schema.GroupVersionKind{}, client.ObjectKey{}, false
}

// read reads an object that another one is about.
func read(
	ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, key client.ObjectKey,
) (*unstructured.Unstructured, error) {
	if kind.Version == "" {
		ref := clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: key.Name}
		return external.GetObjectFromContractVersionedRef(ctx, reader, ref, key.Namespace)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, reader.Get(ctx, key, object)
}

// decoded reads what T has of a watched object.
func decoded[T any](object client.Object) (*T, error) {
	from, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is not unstructured", object)
	}
	return decode[T](from)
}

// ownerOfKind is the object's owner of a kind.
func ownerOfKind(object client.Object, kind schema.GroupKind) (schema.GroupVersionKind, client.ObjectKey, bool) {
	for _, ref := range object.GetOwnerReferences() {
		if is := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind); is.GroupKind() == kind {
			return is, client.ObjectKey{Namespace: object.GetNamespace(), Name: ref.Name}, true
		}
	}
	return schema.GroupVersionKind{}, client.ObjectKey{}, false
}

func owner(object client.Object) (client.ObjectKey, bool) {
	_, key, found := ownerOfKind(object, schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Machine"})
	return key, found
}

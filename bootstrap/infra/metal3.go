// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var (
	metal3MachineKind   = schema.GroupKind{Group: infrastructureGroup, Kind: "Metal3Machine"}
	metal3DataGroupKind = schema.GroupKind{Group: infrastructureGroup, Kind: metal3DataKind}
	bareMetalHostKind   = schema.GroupVersionKind{Group: "metal3.io", Version: "v1alpha1", Kind: "BareMetalHost"}
)

const (
	metal3DataKind = "Metal3Data"

	// bareMetalHostAnnotation on a Metal3Machine names its BareMetalHost, <namespace>/<name>.
	bareMetalHostAnnotation = "metal3.io/BareMetalHost"
	// bareMetalPausedAnnotation on a BareMetalHost keeps it in the state that it has.
	bareMetalPausedAnnotation = "baremetalhost.metal3.io/paused"
	// metal3UUIDLabel on a Node is the UID of its BareMetalHost. By it the Node is found.
	metal3UUIDLabel = "metal3.io/uuid"
)

// States of a BareMetalHost.
const (
	bareMetalProvisioned    = "provisioned"
	bareMetalDeprovisioning = "deprovisioning"
	bareMetalPoweringOff    = "powering off before delete"
	bareMetalDeleting       = "deleting"
)

// metal3 is Metal3: bare metal that is given an image. What it knows of addresses is from its inspection, before that, unless an IPAM has
// given some.
type metal3 struct{ foreign }

type metal3Machine struct {
	Status struct {
		Addresses    clusterv1.MachineAddresses `json:"addresses"`
		RenderedData reference                  `json:"renderedData"`
		Conditions   conditionList              `json:"conditions"`
	} `json:"status"`
}

type bareMetalHost struct {
	Spec struct {
		ConsumerRef reference `json:"consumerRef"`
	} `json:"spec"`
	Status struct {
		ErrorMessage string `json:"errorMessage"`
		Provisioning struct {
			State string `json:"state"`
		} `json:"provisioning"`
	} `json:"status"`
}

// Host is the BareMetalHost that the Metal3Machine has, when it has its image. The image may still be booting.
func (m *metal3) Host(ctx context.Context, s Subject) (*Host, error) {
	object, err := m.machine(ctx, s)
	if err != nil {
		return nil, err
	}
	machine, err := decode[metal3Machine](object)
	if err != nil {
		return nil, err
	}
	namespace, name, found := strings.Cut(object.GetAnnotations()[bareMetalHostAnnotation], "/")
	if !found {
		return nil, &HostPending{Message: fmt.Sprintf("the Metal3Machine %s has no BareMetalHost yet", object.GetName()) +
			machine.Status.Conditions.complaint("AssociateBareMetalHost", "AssociateBMH", clusterv1.ReadyCondition)}
	}
	bmh, err := m.provisioned(ctx, object, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	static, err := m.static(ctx, object, machine.Status.RenderedData.Name)
	if err != nil {
		return nil, err
	}
	inspected := ofType(machine.Status.Addresses, clusterv1.MachineInternalIP)
	addresses := candidates(static, inspected)
	if len(addresses) == 0 {
		return nil, &HostPending{Message: fmt.Sprintf("nobody knows an address of the Metal3Machine %s: the inspection of its BareMetalHost "+
			"has found none, and no IPAM has given it one", object.GetName())}
	}
	return &Host{
		Host: spec.Host{
			Name: s.Machine.Name, ProviderID: fmt.Sprintf("metal3://%s/%s/%s", namespace, name, object.GetName()),
			Address: addresses[0], InternalAddresses: internal(slices.Concat(static, inspected)),
		},
		Access: s.Config.Spec.Access, Candidates: addresses,
		NodeLabels: map[string]string{metal3UUIDLabel: string(bmh.GetUID())},
	}, nil
}

// provisioned is the BareMetalHost of a Metal3Machine.
func (m *metal3) provisioned(
	ctx context.Context, machine *unstructured.Unstructured, key client.ObjectKey,
) (*unstructured.Unstructured, error) {
	object, err := m.get(ctx, bareMetalHostKind, key)
	if apierrors.IsNotFound(err) {
		return nil, &HostGone{Message: fmt.Sprintf("the BareMetalHost %s does not exist any more", key)}
	} else if err != nil {
		return nil, fmt.Errorf("get the BareMetalHost %s: %w", key, err)
	}
	h, err := decode[bareMetalHost](object)
	if err != nil {
		return nil, err
	}
	if consumer := &h.Spec.ConsumerRef; !consumer.is(metal3MachineKind, client.ObjectKeyFromObject(machine), key.Namespace) {
		return nil, &HostPending{Message: fmt.Sprintf("the Metal3Machine %s names the BareMetalHost %s, whose consumer is %s",
			machine.GetName(), key, consumer)}
	}
	switch state := h.Status.Provisioning.State; state {
	case bareMetalProvisioned:
		return object, nil
	case bareMetalDeprovisioning, bareMetalPoweringOff, bareMetalDeleting:
		return nil, &HostGone{Message: fmt.Sprintf("the BareMetalHost %s is given up: its state is %s", key, state)}
	default:
		why := fmt.Sprintf("the state of the BareMetalHost %s is %q, not %s", key, said(state), bareMetalProvisioned) +
			paused(object, bareMetalPausedAnnotation)
		return nil, &HostPending{Message: strings.Join(nonEmpty(why, said(h.Status.ErrorMessage)), ": ")}
	}
}

// ipam is a kind of claim for an address, and the kind of the address.
type ipam struct{ claim, address schema.GroupVersionKind }

// ipams are those that Metal3Data have addresses of: Metal3's own, and any that keeps Cluster API's contract.
var ipams = []ipam{
	ipamOf(schema.GroupVersion{Group: "ipam.metal3.io", Version: "v1alpha1"}, "IPClaim"),
	ipamOf(schema.GroupVersion{Group: "ipam.cluster.x-k8s.io", Version: "v1beta2"}, "IPAddressClaim"),
}

func ipamOf(version schema.GroupVersion, claim string) ipam {
	return ipam{claim: version.WithKind(claim), address: version.WithKind("IPAddress")}
}

// addressClaim names the address that it got: Metal3's in address, Cluster API's in addressRef.
type addressClaim struct {
	Status struct {
		Address    reference `json:"address"`
		AddressRef reference `json:"addressRef"`
	} `json:"status"`
}

// claimedAddress names its claim: Metal3's in claim, Cluster API's in claimRef.
type claimedAddress struct {
	Spec struct {
		Address  string    `json:"address"`
		Claim    reference `json:"claim"`
		ClaimRef reference `json:"claimRef"`
	} `json:"spec"`
}

// static are the addresses that an IPAM has given to the Metal3Machine's Metal3Data.
func (m *metal3) static(ctx context.Context, machine *unstructured.Unstructured, data string) ([]string, error) {
	if data == "" {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: machine.GetNamespace(), Name: data}
	// Its name is that of a template and a number, and another may have had it before: its UID tells.
	object, err := m.get(ctx, machine.GroupVersionKind().GroupVersion().WithKind(metal3DataKind), key)
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get the Metal3Data %s: %w", key.Name, err)
	}
	var all []string
	for _, from := range ipams {
		given, err := m.given(ctx, from, object)
		if err != nil {
			return nil, err
		}
		all = append(all, given...)
	}
	return all, nil
}

// given are the addresses that one IPAM has given to a Metal3Data.
func (m *metal3) given(ctx context.Context, from ipam, data *unstructured.Unstructured) ([]string, error) {
	claims, err := m.list(ctx, from.claim, data.GetNamespace())
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil // it is not installed
	} else if err != nil {
		return nil, fmt.Errorf("list the %ss of the Metal3Data %s: %w", from.claim.Kind, data.GetName(), err)
	}
	var all []string
	for i := range claims {
		isOwner := func(r metav1.OwnerReference) bool { return r.Kind == metal3DataKind && r.UID == data.GetUID() }
		if !slices.ContainsFunc(claims[i].GetOwnerReferences(), isOwner) {
			continue
		}
		address, err := m.addressOf(ctx, from, &claims[i])
		if err != nil {
			return nil, err
		}
		if address != "" {
			all = append(all, address)
		}
	}
	return all, nil
}

// addressOf is the address that a claim has got, "" if none yet.
func (m *metal3) addressOf(ctx context.Context, from ipam, object *unstructured.Unstructured) (string, error) {
	claim, err := decode[addressClaim](object)
	if err != nil {
		return "", err
	}
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: cmp.Or(claim.Status.Address.Name, claim.Status.AddressRef.Name)}
	if key.Name == "" {
		return "", nil
	}
	got, err := m.get(ctx, from.address, key)
	if apierrors.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("get the IPAddress %s: %w", key.Name, err)
	}
	address, err := decode[claimedAddress](got)
	if err != nil || cmp.Or(address.Spec.Claim.Name, address.Spec.ClaimRef.Name) != object.GetName() {
		return "", err
	}
	return address.Spec.Address, nil
}

// Reset is Never: the disks are written anew.
func (m *metal3) Reset() spec.ResetPolicy { return spec.ResetNever }

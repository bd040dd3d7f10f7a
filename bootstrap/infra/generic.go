// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// generic is any infrastructure that keeps Cluster API's contract for infrastructure machines: status.addresses and
// spec.providerID. How its hosts are reached is in the KubexmConfig's spec.ssh.
type generic struct {
	live client.Reader
}

// Host is where the infrastructure machine's addresses say.
func (g *generic) Host(ctx context.Context, s Subject) (*Host, error) {
	ref := s.Machine.Spec.InfrastructureRef
	ssh := s.Config.Spec.SSH
	if ssh.User == "" {
		return nil, &NotYet{Message: fmt.Sprintf("spec.ssh: hosts of %s say nothing of how they are reached: set user, credentialsRef and hostKeys", ref.Kind)}
	}
	object, err := external.GetObjectFromContractVersionedRef(ctx, g.live, ref, s.Machine.Namespace)
	if apierrors.IsNotFound(err) {
		return nil, &Lost{Message: fmt.Sprintf("the %s does not exist", describe(ref))}
	} else if err != nil {
		return nil, fmt.Errorf("get the %s: %w", describe(ref), err)
	}
	addresses, providerID, err := contractFields(object)
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", describe(ref), err)
	}
	if len(addresses) == 0 {
		addresses = s.Machine.Status.Addresses
	}
	h := &Host{
		Name:       cmp.Or(strings.ToLower(first(addresses, clusterv1.MachineHostName)), s.Machine.Name),
		ProviderID: cmp.Or(providerID, s.Machine.Spec.ProviderID),
		Port:       ssh.Port, User: ssh.User, Credentials: ssh.CredentialsRef.Name, HostKeys: ssh.HostKeys,
	}
	h.Internal = reachable(addresses, clusterv1.MachineInternalIP)
	for _, candidate := range append(reachable(addresses, clusterv1.MachineExternalIP), h.Internal...) {
		if h.Address == "" && spec.FamilyOf(candidate) == spec.IPv4 {
			h.Address = candidate
		}
	}
	if h.Address == "" {
		return nil, &NotYet{Message: fmt.Sprintf("the %s has no address yet", describe(ref))}
	}
	return h, nil
}

// Door is for the user of spec.ssh.
func (g *generic) Door(s Subject) *Door {
	ssh := s.Config.Spec.SSH
	if ssh.User == "" {
		return nil
	}
	return &Door{User: ssh.User, Credentials: ssh.CredentialsRef.Name}
}

// Met does nothing: nobody asks.
func (g *generic) Met(context.Context, Subject, Contact) error { return nil }

// Left does nothing: the infrastructure deletes the host, or does not care.
func (g *generic) Left(context.Context, Subject, Cleanness) error { return nil }

func contractFields(object *unstructured.Unstructured) (clusterv1.MachineAddresses, string, error) {
	var machine struct {
		Spec struct {
			ProviderID string `json:"providerID"`
		} `json:"spec"`
		Status struct {
			Addresses clusterv1.MachineAddresses `json:"addresses"`
		} `json:"status"`
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &machine)
	return machine.Status.Addresses, machine.Spec.ProviderID, err
}

// reachable are the addresses of a kind at which others may reach the host.
func reachable(addresses clusterv1.MachineAddresses, kind clusterv1.MachineAddressType) []string {
	var found []string
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a.Address); a.Type == kind && err == nil && ip.IsGlobalUnicast() {
			found = append(found, ip.Unmap().String())
		}
	}
	return found
}

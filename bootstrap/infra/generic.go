// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// generic is any infrastructure that keeps Cluster API's contract for infrastructure machines: status.addresses and
// spec.providerID.
type generic struct{ foreign }

// Host is where the infrastructure machine's addresses say.
func (g *generic) Host(ctx context.Context, s Subject) (*Host, error) {
	machine, err := g.contractMachine(ctx, s)
	if err != nil {
		return nil, err
	}
	return machine.host(s, s.Machine.Name, cmp.Or(machine.Spec.ProviderID, s.Machine.Spec.ProviderID))
}

// Reset is WhenReachable: the host may be gone for good, and then nobody wants it back.
func (g *generic) Reset() spec.ResetPolicy { return spec.ResetWhenReachable }

func (f *foreign) contractMachine(ctx context.Context, s Subject) (*contractMachine, error) {
	object, err := f.machine(ctx, s)
	if err != nil {
		return nil, err
	}
	return decode[contractMachine](object)
}

// host is what an infrastructure machine says by the contract. Where it names no Hostname, the Node is called name.
func (m *contractMachine) host(s Subject, name, providerID string) (*Host, error) {
	ref, addresses := describe(s.Machine.Spec.InfrastructureRef), m.Status.Addresses
	if len(addresses) == 0 {
		addresses = s.Machine.Status.Addresses
	}
	if hostnames := ofType(addresses, clusterv1.MachineHostName); len(hostnames) > 0 {
		name = strings.ToLower(hostnames[0])
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return nil, &HostPending{Message: fmt.Sprintf("the %s says that its Hostname is %q, and no Node can be called so", ref, said(name))}
	}
	inside := ofType(addresses, clusterv1.MachineInternalIP)
	found := candidates(ofType(addresses, clusterv1.MachineExternalIP), inside)
	if len(found) == 0 {
		return nil, &HostPending{Message: fmt.Sprintf("the %s has no address yet", ref) + m.Status.Conditions.complaint(clusterv1.ReadyCondition)}
	}
	return &Host{
		Host:       spec.Host{Name: name, ProviderID: providerID, Address: found[0], InternalAddresses: internal(inside)},
		Access:     s.Config.Spec.Access,
		Candidates: found,
	}, nil
}

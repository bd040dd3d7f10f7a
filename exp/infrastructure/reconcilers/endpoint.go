// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1beta1"
)

// defaultPort is the API server's port where nobody says another.
const defaultPort = 6443

// endpoint is where the API server is reached: as declared, by the KubexmCluster before the Cluster, and for the rest
// at the first control plane Machine's host. It has no host while there is none.
func endpoint(declared, cluster clusterv1.APIEndpoint, owners []clusterv1.Machine, machines []infrav1.KubexmMachine) clusterv1.APIEndpoint {
	found := clusterv1.APIEndpoint{
		Host: cmp.Or(declared.Host, cluster.Host, firstControlPlaneAddress(owners, machines)),
		Port: cmp.Or(declared.Port, cluster.Port),
	}
	if found.Host != "" {
		found.Port = cmp.Or(found.Port, defaultPort)
	}
	return found
}

// firstControlPlaneAddress is the address, as seen from outside of the cluster, of the host of the oldest control plane
// Machine that has one.
func firstControlPlaneAddress(owners []clusterv1.Machine, machines []infrav1.KubexmMachine) string {
	owners = slices.SortedFunc(slices.Values(owners), func(a, b clusterv1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range owners {
		owner := &owners[i]
		if _, controlPlane := owner.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane || !owner.DeletionTimestamp.IsZero() {
			continue
		}
		for j := range machines {
			if machines[j].Name != owner.Spec.InfrastructureRef.Name {
				continue
			}
			for _, address := range machines[j].Status.Addresses {
				if address.Type == clusterv1.MachineExternalIP {
					return address.Address
				}
			}
		}
	}
	return ""
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// defaultPort is the API server's port where nobody says another.
const defaultPort = 6443

// endpoint is where the API server is reached: the declared one, by the KubexmCluster before the Cluster and the control plane, and for the
// rest at the first control plane Machine's host. It has no host while there is none.
func endpoint(
	declared, cluster, controlPlane clusterv1.APIEndpoint, owners []clusterv1.Machine, machines []infrav1.KubexmMachine,
) clusterv1.APIEndpoint {
	found := clusterv1.APIEndpoint{
		Host: cmp.Or(declared.Host, cluster.Host, controlPlane.Host, firstControlPlaneAddress(owners, machines)),
		Port: cmp.Or(declared.Port, cluster.Port, controlPlane.Port),
	}
	if found.Host != "" {
		found.Port = cmp.Or(found.Port, defaultPort)
	}
	return found
}

// firstControlPlaneAddress is the IPv4 address, of an endpoint's family, of the host of the oldest control plane Machine that has one: the
// one as seen from outside of the cluster, or the first from inside where outside of it the host is reached by IPv6.
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
			for _, kind := range []clusterv1.MachineAddressType{clusterv1.MachineExternalIP, clusterv1.MachineInternalIP} {
				for _, address := range machines[j].Status.Addresses {
					if address.Type == kind && spec.FamilyOf(address.Address) == spec.IPv4 {
						return address.Address
					}
				}
			}
		}
	}
	return ""
}

// controlPlaneEndpoint is the endpoint that the Cluster's control plane says, at the path of the contract; none where it says none, or is
// no KubexmControlPlane: another provider's takes the infrastructure's.
func (r *KubexmClusterReconciler) controlPlaneEndpoint(ctx context.Context, cluster *clusterv1.Cluster) (clusterv1.APIEndpoint, error) {
	var none clusterv1.APIEndpoint
	ref := cluster.Spec.ControlPlaneRef
	if ref.Kind != "KubexmControlPlane" || cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return none, nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.APIGroup, Version: "v1beta1", Kind: ref.Kind})
	switch err := r.Reader.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, object); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return none, nil // it comes before its Machines
	case err != nil:
		return none, fmt.Errorf("get the %s %s: %w", ref.Kind, ref.Name, err)
	}
	host, _, noHost := unstructured.NestedString(object.Object, "spec", "controlPlaneEndpoint", "host")
	port, _, noPort := unstructured.NestedInt64(object.Object, "spec", "controlPlaneEndpoint", "port")
	if err := errors.Join(noHost, noPort); err != nil {
		return none, fmt.Errorf("read the endpoint of the %s %s: %w", ref.Kind, ref.Name, err)
	}
	return clusterv1.APIEndpoint{Host: host, Port: int32(port)}, nil
}

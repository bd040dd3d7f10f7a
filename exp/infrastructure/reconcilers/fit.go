// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// networksAgain is when a machine without a host reads the networks of hosts again: more can be added, and nothing here watches them.
const networksAgain = time.Minute

// selectorOf selects the hosts that a machine may have.
func selectorOf(m *infrav1.KubexmMachineSpec) (labels.Selector, error) {
	if m.HostSelector == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(m.HostSelector)
	if err != nil {
		return nil, fmt.Errorf("hostSelector: %w", err)
	}
	return selector, nil
}

// preference is one of a machine's.
type preference struct {
	selector labels.Selector
	weight   int
}

func preferencesOf(m *infrav1.KubexmMachineSpec) ([]preference, error) {
	var all []preference
	for i := range m.Preferences {
		p := &m.Preferences[i]
		selector, err := metav1.LabelSelectorAsSelector(&p.Selector)
		if err != nil {
			return nil, fmt.Errorf("preferences[%d].selector: %w", i, err)
		}
		all = append(all, preference{selector: selector, weight: int(p.Weight)})
	}
	return all, nil
}

// weight is how much the machine prefers a host.
func (c *claimant) weight(host *infrav1.KubexmHost) int {
	sum := 0
	for _, p := range c.preferred {
		if p.selector.Matches(labels.Set(host.Labels)) {
			sum += p.weight
		}
	}
	return sum
}

// lacks says what a host has not of what is required, "" if it has all of it. What is not known of it, it is not taken to have.
func lacks(host *infrav1.KubexmHost, required infrav1.HostCapacity) string {
	has := host.CapacityOf()
	switch {
	case required.CPUs > 0 && has.CPUs == 0:
		return "of unknown processors (say so in spec.capacity)"
	case has.CPUs < required.CPUs:
		return fmt.Sprintf("with fewer than %d processors", required.CPUs)
	case !required.Memory.IsZero() && has.Memory.IsZero():
		return "of unknown memory (say so in spec.capacity)"
	case has.Memory.Cmp(required.Memory) < 0:
		return fmt.Sprintf("with less than %s of memory", required.Memory.String())
	}
	return ""
}

// outside says that a host has no address of the cluster's first family in the networks in which its hosts reach each other, "" if it has
// one. The bootstrap provider would refuse the host for ever: of a pool's hosts it takes the addresses that are declared alone.
func (c *claimant) outside(host *infrav1.KubexmHost) string {
	in := spec.Host{Address: host.Spec.Address, InternalAddresses: c.network.Usable(host.Spec.InternalAddresses)}
	address, primary := in.NodeAddress(), c.network.PrimaryFamily()
	switch {
	case c.network.HasHost(address) && spec.FamilyOf(address) == primary:
		return ""
	case len(c.network.HostCIDRs) == 0:
		return fmt.Sprintf("with no %s address", primary)
	}
	return fmt.Sprintf("with no %s address in the networks of hosts (network.hostCIDRs: %s)", primary, strings.Join(c.network.HostCIDRs, ", "))
}

// networkOf is the Cluster's network as its KubexmClusterConfig says or, until there is one, the KubexmControlPlane that writes it. Where
// there is neither, no networks of hosts are declared.
func (r *KubexmMachineReconciler) networkOf(ctx context.Context, cluster *clusterv1.Cluster) (spec.Network, error) {
	network := spec.Network{PodCIDRs: cluster.Spec.ClusterNetwork.Pods.CIDRBlocks}
	said := []clusterv1.ContractVersionedObjectReference{{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubexmClusterConfig", Name: cluster.Name}}
	if ref := cluster.Spec.ControlPlaneRef; ref.Kind == "KubexmControlPlane" {
		said = append(said, ref)
	}
	for _, ref := range said {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.APIGroup, Version: "v1beta1", Kind: ref.Kind})
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, object)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return network, fmt.Errorf("get the %s %s: %w", ref.Kind, ref.Name, err)
		}
		hosts, _, noHosts := unstructured.NestedStringSlice(object.Object, "spec", "cluster", "network", "hostCIDRs")
		pods, _, noPods := unstructured.NestedStringSlice(object.Object, "spec", "cluster", "network", "podCIDRs")
		if err := errors.Join(noHosts, noPods); err != nil {
			return network, fmt.Errorf("read the network of the %s %s: %w", ref.Kind, ref.Name, err)
		}
		if network.HostCIDRs = hosts; len(pods) > 0 {
			network.PodCIDRs = pods
		}
		return network, nil
	}
	return network, nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Stays reports whether the member is a part of the cluster, and is not about to leave it.
func (m *ClusterMember) Stays() bool { return m.Phase == MemberJoining || m.Phase == MemberServing }

// Host is the member as other hosts know it.
func (m *ClusterMember) Host() spec.Member {
	return spec.Member{Name: m.Name, Role: m.Role, Address: m.Address}
}

// SortMembers puts members in the order in which they are written: by their names.
func SortMembers(members []ClusterMember) {
	slices.SortFunc(members, func(a, b ClusterMember) int { return cmp.Compare(a.Name, b.Name) })
}

// MembersDigest is the digest of members, in whatever order, as sha256:… It depends on what the list says alone: an object that was
// created anew with the same members has the same.
func MembersDigest(members []ClusterMember) string {
	members = slices.Clone(members)
	SortMembers(members)
	sum := sha256.New()
	for _, m := range members {
		fmt.Fprintf(sum, "%q %q %q %q %q\n", m.Name, m.Role, m.Address, m.Phase, m.ConfigName)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// Shared is what all hosts of a Cluster share: what the specification says. What it leaves out of the networks and the endpoint is
// the Cluster's.
func (s *KubexmClusterConfigSpec) Shared(cluster *clusterv1.Cluster) spec.Cluster {
	shared := *s.Cluster.DeepCopy()
	network := cluster.Spec.ClusterNetwork
	if len(shared.Network.PodCIDRs) == 0 {
		shared.Network.PodCIDRs = slices.Clone(network.Pods.CIDRBlocks)
	}
	if len(shared.Network.ServiceCIDRs) == 0 {
		shared.Network.ServiceCIDRs = slices.Clone(network.Services.CIDRBlocks)
	}
	shared.DNS.ClusterDomain = cmp.Or(shared.DNS.ClusterDomain, network.ServiceDomain)

	endpoint := s.ControlPlaneEndpoint
	if endpoint.Host == "" {
		endpoint.Host = cluster.Spec.ControlPlaneEndpoint.Host
	}
	endpoint.Port = cmp.Or(endpoint.Port, cluster.Spec.ControlPlaneEndpoint.Port)
	shared.ControlPlaneEndpoint.Lay(endpoint.Host, endpoint.Port)
	return shared
}

// WithCluster is what all hosts of a Cluster share where a control plane says shared: what the Cluster says of networks counts
// before that. Its endpoint does too, but is laid over by Shared.
func WithCluster(shared *spec.Cluster, cluster *clusterv1.Cluster) spec.Cluster {
	with := *shared.DeepCopy()
	network := cluster.Spec.ClusterNetwork
	if blocks := network.Pods.CIDRBlocks; len(blocks) > 0 {
		with.Network.PodCIDRs = slices.Clone(blocks)
	}
	if blocks := network.Services.CIDRBlocks; len(blocks) > 0 {
		with.Network.ServiceCIDRs = slices.Clone(blocks)
	}
	with.DNS.ClusterDomain = cmp.Or(network.ServiceDomain, with.DNS.ClusterDomain)
	return with
}

// MemberOf is the member that a KubexmConfig is for, nil if there is none: by the name of the KubexmConfig, or by the name of its host
// where the list does not say which KubexmConfig that is. A KubexmConfig that names its host itself must have the member's role.
func (s *KubexmClusterConfigSpec) MemberOf(c *KubexmConfig) *ClusterMember {
	name := cmp.Or(c.Spec.HostRef.Name, c.Status.Host.Name)
	for i := range s.Members {
		m := &s.Members[i]
		if m.ConfigName != c.Name && (m.ConfigName != "" || m.Name != name || name == "") {
			continue
		}
		if ref := c.Spec.HostRef; ref.Name == "" || ref.Name == m.Name && ref.Role == m.Role {
			return m
		}
	}
	return nil
}

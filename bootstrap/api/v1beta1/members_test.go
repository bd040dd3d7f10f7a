// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestShared(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster, endpoint clusterv1.APIEndpoint
		network           clusterv1.ClusterNetwork
		shared            spec.Cluster
		want              spec.Cluster
	}{
		"the endpoint counts": {
			endpoint: clusterv1.APIEndpoint{Host: "10.1.0.1", Port: 6443},
			shared:   spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Address: "10.9.9.9", Port: 7443}},
			want:     spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Address: "10.1.0.1", Port: 6443}},
		},
		"the Cluster's, where there is no other": {
			cluster: clusterv1.APIEndpoint{Host: "10.1.0.1", Port: 6443},
			want:    spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Address: "10.1.0.1", Port: 6443}},
		},
		"a name is the domain, and keeps the address that the control plane gives it": {
			endpoint: clusterv1.APIEndpoint{Host: "api.prod.example", Port: 6443},
			shared:   spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Address: "10.1.0.1"}},
			want:     spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Domain: "api.prod.example", Address: "10.1.0.1", Port: 6443}},
		},
		"the Cluster's networks, where there are no others": {
			network: clusterv1.ClusterNetwork{
				Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.244.0.0/16"}}, ServiceDomain: "prod.local",
				Services: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.9.0.0/16"}},
			},
			shared: spec.Cluster{Network: spec.Network{ServiceCIDRs: []string{"10.96.0.0/12"}}},
			want: spec.Cluster{
				Network: spec.Network{PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/12"}},
				DNS:     spec.DNS{ClusterDomain: "prod.local"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: tc.cluster, ClusterNetwork: tc.network}}
			s := KubexmClusterConfigSpec{ControlPlaneEndpoint: tc.endpoint, Cluster: tc.shared}
			if diff := cmp.Diff(tc.want, s.Shared(cluster)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWithCluster: what the Cluster says of networks counts before what a control plane says.
func TestWithCluster(t *testing.T) {
	cluster := &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{
		Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.244.0.0/16"}}, ServiceDomain: "prod.local",
	}}}
	shared := spec.Cluster{Network: spec.Network{PodCIDRs: []string{"10.0.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/12"}}}
	want := spec.Cluster{
		Network: spec.Network{PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/12"}}, DNS: spec.DNS{ClusterDomain: "prod.local"},
	}
	if diff := cmp.Diff(want, WithCluster(&shared, cluster)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMembersDigest(t *testing.T) {
	a := ClusterMember{Name: "a", Role: spec.RoleEtcd, Address: "10.1.0.1", Phase: MemberServing}
	b := ClusterMember{Name: "b", Role: spec.RoleEtcd, Address: "10.1.0.2", Phase: MemberServing}
	gone := b
	gone.Phase = MemberRemoved
	base := MembersDigest([]ClusterMember{a, b})
	if MembersDigest([]ClusterMember{b, a}) != base {
		t.Error("the order is no part of what the list says")
	}
	for name, other := range map[string][]ClusterMember{"without one": {a}, "one is removed": {a, gone}, "nobody": nil} {
		if MembersDigest(other) == base {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

func TestMemberOf(t *testing.T) {
	s := KubexmClusterConfigSpec{Members: []ClusterMember{
		{Name: "e1", Role: spec.RoleEtcd, ConfigName: "prod-e1"}, {Name: "cp1", Role: spec.RoleControlPlane},
	}}
	config := func(name, host string, ref HostReference) *KubexmConfig {
		c := &KubexmConfig{Spec: KubexmConfigSpec{HostRef: ref}}
		c.Name, c.Status.Host.Name = name, host
		return c
	}
	for name, tc := range map[string]struct {
		config *KubexmConfig
		want   string
	}{
		"by its name":                            {config("prod-e1", "", HostReference{Name: "e1", Role: spec.RoleEtcd}), "e1"},
		"another KubexmConfig for the same host": {config("mine", "e1", HostReference{Name: "e1", Role: spec.RoleEtcd}), ""},
		"another host":                           {config("prod-e1", "", HostReference{Name: "e2", Role: spec.RoleEtcd}), ""},
		"another role":                           {config("prod-e1", "", HostReference{Name: "e1", Role: spec.RoleLoadBalancer}), ""},
		"by its host":                            {config("any", "cp1", HostReference{}), "cp1"},
		"nothing is known of the host, or its name": {config("any", "", HostReference{}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if m := s.MemberOf(tc.config); m != nil {
				got = m.Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// The guide's table has the ports of each role.
func TestPortsAreDocumented(t *testing.T) {
	const begin, end = "<!-- ports -->\n", "<!-- end of ports -->\n"
	name := filepath.Join("..", "..", "docs", "guides", "firewalls.md")
	var want strings.Builder
	want.WriteString("\n| Host | Port | For | Only if | From |\n|---|---|---|---|---|\n")
	for _, role := range []spec.Role{spec.RoleControlPlane, spec.RoleWorker, spec.RoleEtcd, spec.RoleLoadBalancer} {
		for _, p := range ofAllNetworks(role) {
			from := "anywhere"
			if p.From != "" {
				from = "the cluster's other hosts of this role"
			}
			fmt.Fprintf(&want, "| %s | %s | %s | %s | %s |\n", role, p, p.For, p.When, from)
		}
	}
	want.WriteString("\n")
	golden.Part(t, name, begin, end, want.String())
}

// ofAllNetworks are a role's ports with each of the networks that a cluster may have.
func ofAllNetworks(role spec.Role) []spec.Port {
	all := portsOf(role).OpenPorts()
	with := portsOf(role)
	with.Cluster.Network = spec.Network{Plugin: spec.NetworkCalico}
	with.Default()
	for at, p := range with.OpenPorts() {
		if !slices.Contains(all, p) {
			all = slices.Insert(all, at+1, p)
		}
	}
	return all
}

// portsOf is a target that has all ports of its role.
func portsOf(role spec.Role) *spec.Target {
	t := &spec.Target{Host: spec.Host{Name: "n1", Role: role, Address: "192.168.0.11"}}
	t.Default()
	return t
}

// What depends on the cluster is open only where it is there.
func TestOpenPorts(t *testing.T) {
	words := func(on *spec.Target) string {
		var all []string
		for _, p := range on.OpenPorts() {
			all = append(all, p.String())
		}
		return strings.Join(all, " ")
	}
	with := func(role spec.Role, change func(*spec.Cluster)) *spec.Target {
		on := &spec.Target{Host: spec.Host{Name: "n1", Role: role, Address: "192.168.0.11"}}
		change(&on.Cluster)
		on.Default()
		return on
	}
	for _, tt := range []struct {
		name, want string
		on         *spec.Target
	}{
		{
			"another port, and an etcd elsewhere", "7443/tcp 10250/tcp 8472/udp 30000-32767/tcp 30000-32767/udp",
			with(spec.RoleControlPlane, func(c *spec.Cluster) { c.ControlPlaneEndpoint.Port, c.Etcd.Type = 7443, spec.EtcdExternal }),
		},
		{
			"no tunnel", "10250/tcp 30000-32767/tcp 30000-32767/udp",
			with(spec.RoleWorker, func(c *spec.Cluster) { c.Network.Flannel.Backend = spec.FlannelHostGW }),
		},
		{
			"calico", "10250/tcp 4789/udp 30000-32767/tcp 30000-32767/udp",
			with(spec.RoleWorker, func(c *spec.Cluster) { c.Network.Plugin = spec.NetworkCalico }),
		},
		{"another port of a load balancer", "7443/tcp vrrp", with(spec.RoleLoadBalancer, func(c *spec.Cluster) { c.ControlPlaneEndpoint.Port = 7443 })},
	} {
		if got := words(tt.on); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A load balancer's peers are the other load balancers, and not itself.
func TestPeers(t *testing.T) {
	on := portsOf(spec.RoleLoadBalancer)
	on.Members = []spec.Member{
		{Name: "n1", Role: spec.RoleLoadBalancer, Address: "192.168.0.11"}, {Name: "n3", Role: spec.RoleLoadBalancer, Address: "192.168.0.13"},
		{Name: "n2", Role: spec.RoleLoadBalancer, Address: "192.168.0.12"}, {Name: "cp", Role: spec.RoleControlPlane, Address: "192.168.0.21"},
	}
	i := slices.IndexFunc(on.OpenPorts(), func(p spec.Port) bool { return p.From != "" })
	if i < 0 {
		t.Fatal("no port is between load balancers alone")
	}
	if got, want := on.Peers(on.OpenPorts()[i]), []string{"192.168.0.12", "192.168.0.13"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

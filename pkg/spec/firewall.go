// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"slices"
)

// FirewallPolicy is what becomes of the firewall that a host came with.
//
// +kubebuilder:validation:Enum=Open;Keep;Off
type FirewallPolicy string

const (
	// FirewallOpen opens what the host's role needs, by an object of the firewall's own that a reset removes.
	FirewallOpen FirewallPolicy = "Open"
	// FirewallKeep leaves it as it is.
	FirewallKeep FirewallPolicy = "Keep"
	// FirewallOff turns it off; a reset turns it on again.
	FirewallOff FirewallPolicy = "Off"
)

// Firewalls that ports can be opened in, as host.System names them.
const (
	Firewalld = "firewalld"
	UFW       = "ufw"
)

// Protocol is one that a firewall knows by this name.
type Protocol string

// Protocols of Ports.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	VRRP Protocol = "vrrp"
)

// Port is one at which something of a cluster listens on a host.
type Port struct {
	// Number is its first or only number, 0 for a protocol that has none. Last, unless it is 0, ends a range.
	Number, Last int32
	Protocol     Protocol
	// For is what it is for, and When, unless it is always there, on which hosts of the role; both in words.
	For, When string
	// From is the role whose hosts alone reach it. If "", others do too, and a host is not told the addresses of all of them: workers,
	// users, and members of etcd on their way out.
	From Role
	// Local ports listen on a loopback address.
	Local bool
}

// String is the port as firewalls and people write it, such as 2379/tcp or 30000-32767/udp.
func (p Port) String() string {
	switch {
	case p.Number == 0:
		return string(p.Protocol)
	case p.Last == 0:
		return fmt.Sprintf("%d/%s", p.Number, p.Protocol)
	}
	return fmt.Sprintf("%d-%d/%s", p.Number, p.Last, p.Protocol)
}

// KubeletPort is the kubelet's.
const KubeletPort = 10250

// Ports are all at which something listens on the host that is t's, in order. This is the only list of them: preflight, firewalls and
// docs/guides/firewalls.md are made of it.
func (t *Target) Ports() []Port {
	api := Port{Number: t.Cluster.ControlPlaneEndpoint.Port, Protocol: TCP, For: "API server"}
	etcd := []Port{
		{Number: 2379, Protocol: TCP, For: "etcd, for API servers"},
		{Number: 2380, Protocol: TCP, For: "etcd, for its members"},
	}
	switch t.Host.Role {
	case RoleEtcd:
		return etcd
	case RoleLoadBalancer:
		api.For = "load balancer of the API servers"
		return []Port{api, {Protocol: VRRP, For: "keepalived", From: RoleLoadBalancer}}
	case RoleControlPlane, RoleWorker:
	}
	var ports []Port
	if t.Host.Role == RoleControlPlane {
		ports = append(ports, api)
		if t.Cluster.Etcd.IsStacked() {
			for _, p := range etcd {
				p.When = "etcd runs on control plane hosts"
				ports = append(ports, p)
			}
		}
	}
	ports = append(ports, Port{Number: KubeletPort, Protocol: TCP, For: "kubelet"})
	if t.Host.Role == RoleControlPlane {
		ports = append(ports,
			Port{Number: 10257, Protocol: TCP, For: "controller manager", Local: true}, Port{Number: 10259, Protocol: TCP, For: "scheduler", Local: true})
		ports = append(ports, t.Cluster.LoadBalancer.ports()...)
	}
	ports = append(ports, t.Cluster.Network.ports()...)
	return append(ports,
		Port{Number: 30000, Last: 32767, Protocol: TCP, For: "NodePorts"}, Port{Number: 30000, Last: 32767, Protocol: UDP, For: "NodePorts"})
}

// OpenPorts are those of Ports that others reach.
func (t *Target) OpenPorts() []Port {
	return slices.DeleteFunc(t.Ports(), func(p Port) bool { return p.Local })
}

// Peers are the addresses of the other hosts that reach p, which is From a role.
func (t *Target) Peers(p Port) []string {
	var addresses []string
	for _, m := range t.MembersWith(p.From) {
		if m.Name != t.Host.Name {
			addresses = append(addresses, m.Address)
		}
	}
	return addresses
}

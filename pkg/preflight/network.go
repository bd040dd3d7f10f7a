// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// network: the host has the address that others know, and is in none of the cluster's own networks.
func network(r *report) {
	node, err := netip.ParseAddr(r.t.Host.NodeAddress())
	if own := addresses(r.f.System.Addresses); err == nil && len(own) > 0 && !slices.Contains(own, node.Unmap()) {
		r.error(fmt.Sprintf("none of the host's interfaces has its address %s; they have %s", node, strings.Join(r.f.System.Addresses, ", ")),
			"give the address of an interface as the first of internalAddresses")
	}
	dualStack(r)
	balanced(r)
	virtual(r)
	if r.ours() {
		return // the networks of pods are there
	}
	carried(r)
	for _, n := range []struct {
		what, field string
		cidrs       []string
	}{
		{"pods", "network.podCIDRs", r.t.Cluster.Network.PodCIDRs},
		{"services", "network.serviceCIDRs", r.t.Cluster.Network.ServiceCIDRs},
	} {
		for _, cidr := range n.cidrs {
			if taken := overlapping(cidr, r.f.System.Addresses); taken != "" {
				r.error(fmt.Sprintf("an interface of the host is in the network %s, which overlaps the network of %s %s", taken, n.what, cidr),
					"choose another network in "+n.field)
			}
		}
	}
}

// IDs of commands: the IPv6 default routes, and the interface that has the Node's address.
const dualStackRoutes, nodeInterface = "preflight/ipv6-routes", "preflight/node-interface"

func networkQuery(t spec.Target) host.Query {
	if !t.Host.Role.IsNode() {
		return host.Query{}
	}
	q := host.Query{}
	if t.Cluster.Network.IsDualStack() {
		q.Commands = append(q.Commands, host.CommandQuery{ID: dualStackRoutes, Argv: []string{"ip", "-6", "-oneline", "route", "show", "default"}})
		q.Sysctls = []string{ipv6Off, newIPv6Off}
	}
	if byDefaultRoute(t) {
		q.Commands = append(q.Commands, host.CommandQuery{
			ID: nodeInterface, Argv: []string{"ip", "-oneline", "address", "show", "to", t.Host.NodeAddress()},
		})
	}
	return q
}

// byDefaultRoute reports whether the host is a Node whose network goes by the default route.
func byDefaultRoute(t spec.Target) bool {
	network := tables.Networks[t.Cluster.Network.Plugin]
	return t.Host.Role.IsNode() && network != nil && network.ByDefaultRoute(t.Cluster.Network)
}

// carried: where no networks of hosts are declared, Pods' packets leave by the interface of the default route, whichever has the Node's
// address. Hosts may reach each other by both, so it is no error.
func carried(r *report) {
	if !byDefaultRoute(r.t) {
		return
	}
	words := strings.Fields(string(r.f.Commands[nodeInterface].Stdout)) // "2: eth0    inet 10.0.0.2/24 …"
	if len(words) < 2 {
		return
	}
	has, _, _ := strings.Cut(words[1], "@")
	if by := r.f.System.DefaultInterface; by != "" && has != by {
		r.warn(fmt.Sprintf("the interface %s has the host's address %s, and Pods' packets would leave by %s, which has the default route", has, r.t.Host.NodeAddress(), by),
			fmt.Sprintf("declare the networks in which hosts reach each other in network.hostCIDRs; in a cluster that exists already, where that cannot be "+
				"done, see that its hosts reach each other by %s", by))
	}
}

// ipv6Off is what kube-proxy takes for a kernel without IPv6, and newIPv6Off keeps it off interfaces that flannel makes, even
// where those that are there have addresses: so containers of Docker are.
const ipv6Off, newIPv6Off = "net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"

// dualStack: in a dual stack cluster, a Node has an address of each family on its interfaces, and where flannel goes by the default
// route, it goes by those of both.
func dualStack(r *report) {
	if !r.t.Host.Role.IsNode() || !r.t.Cluster.Network.IsDualStack() {
		return
	}
	for _, name := range []string{ipv6Off, newIPv6Off} {
		if r.f.Sysctls[name] == "1" {
			r.error("IPv6 is turned off by the kernel parameter "+name+", and the cluster is dual stack", "set it to 0 on the host")
		}
	}
	declared := len(r.t.NodeAddresses("")) == 2
	all, own := r.t.NodeAddresses(r.f.System.DefaultIPv6), addresses(r.f.System.Addresses)
	second, err := netip.ParseAddr(all[len(all)-1])
	switch {
	case len(all) < 2:
		r.error(fmt.Sprintf("the cluster is dual stack, and the host has no lasting global IPv6 address on its default interface %s; its interfaces have %s",
			r.f.System.DefaultInterface, strings.Join(r.f.System.Addresses, ", ")),
			"give the interface an IPv6 address, or name the host's in internalAddresses")
		return
	case declared && err == nil && len(own) > 0 && !slices.Contains(own, second):
		r.error(fmt.Sprintf("none of the host's interfaces has its address %s; they have %s", second, strings.Join(r.f.System.Addresses, ", ")),
			"correct it in internalAddresses")
	}
	routes := string(r.f.Commands[dualStackRoutes].Stdout)
	if name := r.f.System.DefaultInterface; byDefaultRoute(r.t) && !slices.Contains(defaultDevices(routes), name) {
		r.error(fmt.Sprintf("there is no IPv6 default route by the interface %s, which has that of IPv4: %s does not start without", name,
			strings.ToLower(string(r.t.Cluster.Network.Plugin))),
			"give the interface an IPv6 default route")
	}
}

// balanced: a load balancer host reaches API servers at the Nodes' first addresses.
func balanced(r *report) {
	if r.t.Host.Role != spec.RoleLoadBalancer || r.t.Cluster.Network.PrimaryFamily() != spec.IPv6 {
		return
	}
	if own := addresses(r.f.System.Addresses); len(own) > 0 && !slices.ContainsFunc(own, netip.Addr.Is6) {
		r.error(fmt.Sprintf("the cluster's first networks are of IPv6, so API servers are reached by it, and the host has no IPv6 address; its interfaces have %s",
			strings.Join(r.f.System.Addresses, ", ")), "give the host an IPv6 address by which it reaches the control plane's hosts")
	}
}

// virtual: a host can only take over an address of a network that it is in; others of this network look for it there (ARP).
func virtual(r *report) {
	in, known := inputs(r.t, r.f.System)
	mayHave := known && (r.t.Host.Role == spec.RoleLoadBalancer && in.External.VirtualAddress != nil ||
		in.IsControlPlane() && in.Internal.VirtualAddress != nil)
	vip, err := netip.ParseAddr(r.t.Cluster.ControlPlaneEndpoint.Address)
	if !mayHave || err != nil || slices.ContainsFunc(r.f.System.Addresses, func(text string) bool {
		own, err := netip.ParsePrefix(text)
		return err == nil && own.Contains(vip)
	}) {
		return
	}
	r.error(fmt.Sprintf("the virtual address %s is in none of the host's networks (%s), so the host cannot take it over",
		vip, strings.Join(r.f.System.Addresses, ", ")),
		"give controlPlaneEndpoint.address a free address of a network that all hosts are in that are to have it")
}

// defaultDevices are the devices of routes as "ip -oneline route" tells them.
func defaultDevices(routes string) []string {
	var devices []string
	words := strings.Fields(strings.ReplaceAll(routes, "\\", " "))
	for i, word := range words {
		if word == "dev" && i+1 < len(words) {
			devices = append(devices, words[i+1])
		}
	}
	return devices
}

// overlapping is the first of the networks that overlaps cidr, or "".
func overlapping(cidr string, networks []string) string {
	want, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	for _, text := range networks {
		if have, err := netip.ParsePrefix(text); err == nil && have.Masked().Overlaps(want) {
			return have.Masked().String()
		}
	}
	return ""
}

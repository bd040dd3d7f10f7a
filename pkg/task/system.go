// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
)

// User writes the files and runs the commands that the user asks for before anything else.
func User(in component.Inputs) plan.Task {
	var steps []step.Step
	if len(in.Files) > 0 {
		steps = append(steps, system.Files(in.Files))
	}
	if lines := in.Target.Node.PreCommands; len(lines) > 0 {
		steps = append(steps, system.Commands("pre-commands", lines))
	}
	return plan.Task{Name: "user", Steps: steps}
}

// UserAfter runs the commands that the user asks for when the host is a Node.
func UserAfter(in component.Inputs) plan.Task {
	var steps []step.Step
	if lines := in.Target.Node.PostCommands; len(lines) > 0 {
		steps = append(steps, system.Commands("post-commands", lines))
	}
	return plan.Task{Name: "user-after", Steps: steps}
}

// System tunes the operating system.
func System(in component.Inputs) plan.Task {
	s := in.Target.System()
	var steps []step.Step
	if s.Swap == spec.PolicyOff && in.IsNode() {
		steps = append(steps, system.Swap(in.OS.Swap()))
	}
	if in.IsNode() && component.Relevant(in.System).NetworkManager {
		steps = append(steps, system.Unmanaged(in.Network.Residue().Links))
	}
	switch active := component.Relevant(in.System).Firewall; {
	case s.Firewall == spec.FirewallOff:
		steps = append(steps, system.FirewallOff())
	case s.Firewall == spec.FirewallOpen && active == spec.Firewalld:
		steps = append(steps, system.Firewalld(openings(in)))
	case s.Firewall == spec.FirewallOpen && active == spec.UFW:
		steps = append(steps, system.UFW(openings(in)))
	}
	if names := append(in.ServiceProxy.Packages(in), users(in.OS.Packages().Kind, s.Packages)...); len(names) > 0 {
		steps = append(steps, system.Packages(names, in.PackageFiles.For(names...)))
	}
	lasting, momentary := s.Sysctls, []spec.Sysctl(nil)
	if in.IsNode() {
		ofProxy, forProxy := in.ServiceProxy.Sysctls(in)
		lasting = append(besides(append(sysctls(in), ofProxy...), s.Sysctls), s.Sysctls...)
		momentary = besides(append(forProxy, momentarySysctls()...), s.Sysctls)
	}
	if names := in.Modules(); len(names) > 0 {
		steps = append(steps, system.Modules(names))
	}
	if len(lasting) > 0 {
		steps = append(steps, system.Sysctls(lasting, momentary))
	}
	return plan.Task{Name: "system", Steps: append(steps, system.EtcHosts(etcHosts(in, s)), system.Hostname(in.Target.Host.Name))}
}

// openings are what must get past the host's firewall.
func openings(in component.Inputs) system.Openings {
	var o system.Openings
	for _, p := range in.Target.OpenPorts() {
		if p.From == "" {
			o.Ports = append(o.Ports, p)
			continue
		}
		for _, address := range in.Target.Peers(p) {
			o.Peers = append(o.Peers, system.Peer{Address: address, Port: p})
		}
	}
	if in.IsNode() {
		o.Pods = in.Target.Cluster.Network.PodCIDRs
	}
	return o
}

// users are the packages of the host's kind that the user asks for. Those of the other kind are for other hosts of the cluster.
func users(kind family.Kind, p spec.Packages) []string {
	if kind == family.RPMs {
		return p.RPMs
	}
	return p.Debs
}

// besides are those of ours that the user does not set.
func besides(ours, users []spec.Sysctl) []spec.Sysctl {
	name := func(s spec.Sysctl) string { return strings.ReplaceAll(s.Name, "/", ".") }
	return slices.DeleteFunc(ours, func(o spec.Sysctl) bool {
		return slices.ContainsFunc(users, func(u spec.Sysctl) bool { return name(u) == name(o) })
	})
}

// sysctls are the parameters without which pods cannot reach each other, and those that the kubelet would otherwise set itself, so that a
// reset can restore them.
func sysctls(in component.Inputs) []spec.Sysctl {
	all := []spec.Sysctl{
		{Name: "net.ipv4.ip_forward", Value: "1"},
		{Name: "net.bridge.bridge-nf-call-iptables", Value: "1"},
		{Name: "net.bridge.bridge-nf-call-ip6tables", Value: "1"},
		{Name: "vm.overcommit_memory", Value: "1"},
		{Name: "kernel.panic", Value: "10"},
		{Name: "kernel.panic_on_oops", Value: "1"},
	}
	if in.Target.Cluster.Network.IsDualStack() {
		all = append(all, spec.Sysctl{Name: "net.ipv6.conf.all.forwarding", Value: "1"})
	}
	return all
}

// momentarySysctls are set by the kubelet when it starts.
func momentarySysctls() []spec.Sysctl {
	return []spec.Sysctl{
		{Name: "vm.panic_on_oom", Value: "0"},
		{Name: "kernel.keys.root_maxkeys", Value: "1000000"},
		{Name: "kernel.keys.root_maxbytes", Value: "25000000"},
	}
}

func etcHosts(in component.Inputs, s spec.System) []spec.HostEntry {
	var entries []spec.HostEntry
	e := in.Target.Cluster.ControlPlaneEndpoint
	if e.Domain != "" && e.DomainResolution == spec.DomainHostsFile && in.IsNode() {
		for _, address := range endpointAddresses(in) {
			entries = append(entries, spec.HostEntry{Address: address, Hostnames: []string{e.Domain}})
		}
	}
	h := in.Target.Host
	entries = append(entries, spec.HostEntry{Address: h.NodeAddress(), Hostnames: []string{h.Name}})
	return append(entries, s.EtcHosts...)
}

// endpointAddresses are those of the endpoint's domain, as the host sees it. Where each Node has a load balancer of its own, a
// worker's is on the worker itself, and a control plane host asks its own API server. Both have the API servers behind that,
// for as long as nothing of their own answers: Kubernetes' programs try all addresses of a name in turn.
func endpointAddresses(in component.Inputs) []string {
	e := in.Target.Cluster.ControlPlaneEndpoint
	switch {
	case in.Internal.Proxy != nil && in.External.Proxy == nil:
		addresses := []string{"127.0.0.1"}
		if in.IsControlPlane() {
			addresses = []string{in.Target.Host.NodeAddress()}
		}
		for _, m := range in.Target.MembersWith(spec.RoleControlPlane) {
			if !slices.Contains(addresses, m.Address) {
				addresses = append(addresses, m.Address)
			}
		}
		return addresses
	case e.Address != "":
		return []string{e.Address}
	}
	return nil
}

// Files are the user's, as steps. An error names the field of the file that cannot be written.
func Files(t *spec.Target) ([]step.Step, error) {
	var steps []step.Step
	for _, f := range t.Node.Files {
		s, err := system.File(f, t)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

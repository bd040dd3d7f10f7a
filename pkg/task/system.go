// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
)

// User writes the files and runs the commands that the user asks for before anything else.
func User(in Inputs) plan.Task {
	var steps []step.Step
	if len(in.files) > 0 {
		steps = append(steps, system.Files(in.files))
	}
	if lines := in.Target.Node.PreCommands; len(lines) > 0 {
		steps = append(steps, system.Commands("pre-commands", lines))
	}
	return plan.Task{Name: "user", Steps: steps}
}

// UserAfter runs the commands that the user asks for when the host is a Node.
func UserAfter(in Inputs) plan.Task {
	var steps []step.Step
	if lines := in.Target.Node.PostCommands; len(lines) > 0 {
		steps = append(steps, system.Commands("post-commands", lines))
	}
	return plan.Task{Name: "user-after", Steps: steps}
}

// System tunes the operating system.
func System(in Inputs) plan.Task {
	s := in.Target.System()
	var steps []step.Step
	if s.Swap == spec.PolicyOff {
		steps = append(steps, system.Swap())
	}
	if s.Firewall == spec.PolicyOff {
		steps = append(steps, system.Firewall())
	}
	if debs := s.Packages.Debs; len(debs) > 0 {
		steps = append(steps, system.Packages(debs))
	}
	steps = append(steps,
		system.Modules(append([]string{"overlay", "br_netfilter"}, s.Modules...)),
		system.Sysctls(append(in.sysctls(), s.Sysctls...), momentarySysctls()),
		system.EtcHosts(in.etcHosts(s)),
	)
	return plan.Task{Name: "system", Steps: steps}
}

// sysctls are the parameters without which pods cannot reach each other, and those that the kubelet would otherwise set
// itself, so that a reset can put them back.
func (in Inputs) sysctls() []spec.Sysctl {
	return []spec.Sysctl{
		{Name: "net.ipv4.ip_forward", Value: "1"},
		{Name: "net.bridge.bridge-nf-call-iptables", Value: "1"},
		{Name: "net.bridge.bridge-nf-call-ip6tables", Value: "1"},
		{Name: "vm.overcommit_memory", Value: "1"},
		{Name: "kernel.panic", Value: "10"},
		{Name: "kernel.panic_on_oops", Value: "1"},
	}
}

// momentarySysctls are set by kube-proxy (the first) and the kubelet when they start.
func momentarySysctls() []spec.Sysctl {
	return []spec.Sysctl{
		{Name: "net.ipv4.conf.all.route_localnet", Value: "1"},
		{Name: "vm.panic_on_oom", Value: "0"},
		{Name: "kernel.keys.root_maxkeys", Value: "1000000"},
		{Name: "kernel.keys.root_maxbytes", Value: "25000000"},
	}
}

func (in Inputs) etcHosts(s spec.System) []spec.HostEntry {
	var entries []spec.HostEntry
	if e := in.Target.Cluster.ControlPlaneEndpoint; e.Domain != "" && e.Address != "" {
		entries = append(entries, spec.HostEntry{Address: e.Address, Hostnames: []string{e.Domain}})
	}
	h := in.Target.Host
	entries = append(entries, spec.HostEntry{Address: h.NodeAddress(), Hostnames: []string{h.Name}})
	return append(entries, s.EtcHosts...)
}

func (in *Inputs) readFiles() error {
	for _, f := range in.Target.Node.Files {
		s, err := system.File(f)
		if err != nil {
			return err
		}
		in.files = append(in.files, s)
	}
	return nil
}

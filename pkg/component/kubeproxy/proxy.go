// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeproxy

import (
	"strconv"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Pods are kube-proxies that are a Pod on each Node, from a DaemonSet.
type Pods struct{ proxy }

// Unit is a kube-proxy that is a unit of each Node, as the kubelet is: package binary runs both.
type Unit struct{ proxy }

var (
	_ component.ServiceProxy = Pods{}
	_ component.ServiceProxy = Unit{}
)

// Needs are the image.
func (Pods) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	return component.Needs{Images: []component.Image{{Name: "kube-proxy", As: Image}}}
}

// Tasks deploy the DaemonSet. Where an address moves between Nodes, they answer for those of their own interfaces alone.
func (Pods) Tasks(in component.Inputs) []plan.Task {
	strictARP := in.Internal.VirtualAddress != nil
	return []plan.Task{{Name: "kube-proxy", Steps: []step.Step{Deploy(in.Target.Cluster, strictARP, component.APIAnswers)}}}
}

// Unit is none.
func (Pods) Unit() string { return "" }

// DaemonSets are its own.
func (Pods) DaemonSets() []string { return []string{DaemonSet} }

// Packages are none: they are in the image.
func (Pods) Packages(component.Inputs) []string { return nil }

// Needs nothing: it is one of Kubernetes' programs.
func (Unit) Needs(component.Inputs) component.Needs { return component.Needs{} }

// Tasks are none.
func (Unit) Tasks(component.Inputs) []plan.Task { return nil }

// Unit is kube-proxy.
func (Unit) Unit() string { return "kube-proxy" }

// DaemonSets are none.
func (Unit) DaemonSets() []string { return nil }

// Packages have the programs by which it changes rules.
func (Unit) Packages(in component.Inputs) []string {
	if !in.IsNode() {
		return nil
	}
	switch in.Target.Cluster.Kubernetes.Proxy.Mode {
	case spec.ProxyNFTables:
		return family.Names(in.OS, family.NFTables)
	case spec.ProxyIPVS:
		return family.Names(in.OS, family.IPTables, family.IPSet)
	default:
		return family.Names(in.OS, family.IPTables)
	}
}

// proxy is what both are.
type proxy struct{}

// Residue is of all modes. Chains of the packet filter have the kubelet's prefix, and go with its own; sets of addresses are those of the
// mode ipvs.
func (proxy) Residue() step.Residue {
	return step.Residue{
		Links: []string{"kube-ipvs0"}, Chains: []string{"KUBE-"}, Tables: []string{"ip kube-proxy", "ip6 kube-proxy"}, Sets: []string{"KUBE-"},
	}
}

// Modules are those of the mode. The last is loaded with the rules of a packet filter, too; here it is for the sake of its parameters.
func (proxy) Modules(in component.Inputs) []string {
	var names []string
	ipvs := in.Target.Cluster.Kubernetes.Proxy.Mode == spec.ProxyIPVS
	if ipvs {
		names = append(names, "ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh")
	}
	if ipvs || in.System.Container == "" {
		names = append(names, "nf_conntrack")
	}
	return names
}

// MinKernel is what nftables' mode asks for.
func (proxy) MinKernel(in component.Inputs) string {
	if in.IsNode() && in.Target.Cluster.Kubernetes.Proxy.Mode == spec.ProxyNFTables {
		return "5.13"
	}
	return ""
}

// Sysctls are those by which it tracks connections, and that by which NodePorts are reached at a loopback address.
func (proxy) Sysctls(in component.Inputs) (lasting, momentary []spec.Sysctl) {
	if tracked := component.Relevant(in.System).TrackedConnections; tracked > 0 {
		lasting = []spec.Sysctl{
			{Name: "net.netfilter.nf_conntrack_max", Value: strconv.Itoa(int(tracked))},
			{Name: "net.netfilter.nf_conntrack_tcp_timeout_established", Value: "86400"},
			{Name: "net.netfilter.nf_conntrack_tcp_timeout_close_wait", Value: "3600"},
		}
	}
	return lasting, []spec.Sysctl{{Name: "net.ipv4.conf.all.route_localnet", Value: "1"}}
}

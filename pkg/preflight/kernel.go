// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	// minKernel is what kubeadm's own check (k8s.io/system-validators) asks for.
	minKernel = "5.4"
	// minNFTablesKernel is what kube-proxy's nftables mode asks for.
	minNFTablesKernel = "5.13"

	// connectionTracking is needed by kube-proxy in each of its modes. In a container it is not seen.
	connectionTracking = "nf_conntrack"
)

// kernelModules are what the container runtime and the network need, and what the user asked for.
func kernelModules(t spec.Target) []string {
	var modules []string
	if t.Host.Role.IsNode() {
		modules = append(modules, "overlay", "br_netfilter")
		if t.Cluster.Kubernetes.Proxy.Mode == spec.ProxyIPVS {
			modules = append(modules, "ip_vs", "ip_vs_rr", connectionTracking)
		}
	}
	for _, m := range t.System().Modules {
		if !slices.Contains(modules, m) {
			modules = append(modules, m)
		}
	}
	return modules
}

func kernelQuery(t spec.Target) host.Query {
	q := host.Query{Modules: kernelModules(t)}
	if t.Host.Role.IsNode() && t.Cluster.Kubernetes.Proxy.Mode != spec.ProxyNone && !slices.Contains(q.Modules, connectionTracking) {
		q.Modules = append(q.Modules, connectionTracking)
	}
	for _, m := range q.Modules {
		q.Commands = append(q.Commands, host.CommandQuery{ID: loadable(m), Argv: []string{"modprobe", "-n", "-q", "--", m}})
	}
	return q
}

// loadable is the ID of the command that tells whether a module could be loaded.
func loadable(module string) string { return "preflight/modprobe/" + module }

// kernel: seed 002, Step_CheckKernel.
func kernel(r *report) {
	least := minKernel
	if r.t.Cluster.Kubernetes.Proxy.Mode == spec.ProxyNFTables {
		least = minNFTablesKernel
	}
	release, _, _ := strings.Cut(r.f.System.Kernel, "-")
	switch found, err := version.ParseGeneric(release); {
	case err != nil:
		r.warn(fmt.Sprintf("the kernel's version %q cannot be read; %s is needed", r.f.System.Kernel, least), "make sure that it is new enough")
	case found.LessThan(version.MustParseGeneric(least)):
		r.error(fmt.Sprintf("the kernel is %s, and %s is needed", r.f.System.Kernel, least), "install a newer kernel and restart the host")
	}
	modules := kernelModules(r.t)
	tracks := r.t.Host.Role.IsNode() && r.t.Cluster.Kubernetes.Proxy.Mode != spec.ProxyNone
	if tracks && r.f.System.Container == "" && !slices.Contains(modules, connectionTracking) {
		modules = append(modules, connectionTracking)
	}
	for _, m := range modules {
		if tried, asked := r.f.Commands[loadable(m)]; !r.f.Modules[m] && (!asked || tried.ExitCode != 0) {
			r.error(fmt.Sprintf("the kernel module %s is not loaded and cannot be", m),
				"install the package of the kernel's modules, or use a kernel that has it")
		}
	}
	if r.t.Host.Role.IsNode() && r.f.System.CgroupVersion == 1 {
		r.warn("the host has cgroup v1, which Kubernetes is about to drop; the kubelet is set to accept it",
			"boot with systemd.unified_cgroup_hierarchy=1")
	}
}

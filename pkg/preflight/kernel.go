// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// minKernel is what kubeadm's own check (k8s.io/system-validators) asks for.
const minKernel = "5.4"

// inputs are what a plan for the host would go by, with nothing of a bundle. ok is false where nothing fills a slot of its cluster.
func inputs(t spec.Target, sys host.System) (in component.Inputs, ok bool) {
	slots, err := tables.Slots(t.Cluster)
	return component.Inputs{Target: t, System: sys, Slots: slots}, err == nil
}

// kernelQuery asks for the modules of a host that is no container: which it is, is not known yet.
func kernelQuery(t spec.Target) host.Query {
	in, ok := inputs(t, host.System{})
	if !ok {
		return host.Query{}
	}
	q := host.Query{Modules: in.Modules()}
	for _, m := range q.Modules {
		q.Commands = append(q.Commands, host.CommandQuery{ID: loadable(m), Argv: []string{"modprobe", "-n", "-q", "--", m}})
	}
	return q
}

// loadable is the ID of the command that tells whether a module could be loaded.
func loadable(module string) string { return "preflight/modprobe/" + module }

// kernel: seed 002, Step_CheckKernel.
func kernel(r *report) {
	in, ok := inputs(r.t, r.f.System)
	if !ok {
		return
	}
	least := cmp.Or(in.ServiceProxy.MinKernel(in), minKernel)
	release, _, _ := strings.Cut(r.f.System.Kernel, "-")
	switch found, err := version.ParseGeneric(release); {
	case err != nil:
		r.warn(fmt.Sprintf("the kernel's version %q cannot be read; %s is needed", r.f.System.Kernel, least), "make sure that it is new enough")
	case found.LessThan(version.MustParseGeneric(least)):
		r.error(fmt.Sprintf("the kernel is %s, and %s is needed", r.f.System.Kernel, least), "install a newer kernel and restart the host")
	}
	for _, m := range in.Modules() {
		if tried, asked := r.f.Commands[loadable(m)]; !r.f.Modules[m] && (!asked || tried.ExitCode != 0) {
			r.error(fmt.Sprintf("the kernel module %s is not loaded and cannot be", m),
				"install the package of the kernel's modules, or use a kernel that has it")
		}
	}
	if in.IsNode() && r.f.System.CgroupVersion == 1 {
		r.warn("the host has cgroup v1, which Kubernetes is about to drop; the kubelet is set to accept it",
			"boot with systemd.unified_cgroup_hierarchy=1")
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	minCPUs = 2
	// Seed 002, Step_CheckHardware, in units of 10⁹ bytes: machines are sold so, and clouds keep some of it back.
	minControlPlaneMemory = 4_000_000_000
	minWorkerMemory       = 2_000_000_000
	// Hosts of etcd and of load balancers run one or two small programs and no containers.
	minOtherMemory = 500_000_000
	// tolerated is what firmware and kernel reserve of a machine's memory, in percent.
	tolerated = 5

	// What images, binaries and their first containers take, with some room.
	minControlPlaneDisk = 4 << 30
	minWorkerDisk       = 2 << 30
	minOtherDisk        = 1 << 30
	// The kubelet begins to evict pods and images below this share of free space, in percent (imagefs.available).
	evictionFree = 15
)

// hardware: seed 002, Step_CheckHardware.
func hardware(r *report) {
	if r.t.Host.Role.IsNode() && r.f.System.CPUs < minCPUs {
		r.error(fmt.Sprintf("the host has %d CPU, and needs %d", r.f.System.CPUs, minCPUs), "give it more CPUs, or use another host")
	}
	need, role := int64(minOtherMemory), "host that is no Node"
	switch r.t.Host.Role {
	case spec.RoleControlPlane:
		need, role = minControlPlaneMemory, "control plane host"
	case spec.RoleWorker:
		need, role = minWorkerMemory, "worker"
	case spec.RoleEtcd, spec.RoleLoadBalancer:
	}
	if r.f.System.MemoryBytes < need*(100-tolerated)/100 {
		r.error(fmt.Sprintf("the host has %s of memory, and a %s needs %s", size(r.f.System.MemoryBytes), role, size(need)),
			"give it more memory, or use another host")
	}
}

// disk checks the file system of /var/lib, where images, containers and etcd are.
func disk(r *report) {
	free, total := r.f.System.DiskFreeBytes, r.f.System.DiskTotalBytes
	need := int64(minOtherDisk)
	switch r.t.Host.Role {
	case spec.RoleControlPlane:
		need = minControlPlaneDisk
	case spec.RoleWorker:
		need = minWorkerDisk
	case spec.RoleEtcd, spec.RoleLoadBalancer:
	}
	switch {
	case free < need && !r.ours():
		r.error(fmt.Sprintf("%s are free in /var/lib, and %s are needed", size(free), size(need)), "free space, or mount a larger disk at /var/lib")
	case r.t.Host.Role.IsNode() && total > 0 && free*100/total < evictionFree:
		r.warn(fmt.Sprintf("%d %% of the disk of /var/lib are free (%s); below %d %% the kubelet evicts pods and removes images", free*100/total, size(free), evictionFree),
			"free space, or mount a larger disk at /var/lib")
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// selinux: seed 002, Step_CheckSELinuxStatus.
func selinux(r *report) {
	if r.f.System.SELinux == "Enforcing" {
		r.warn("SELinux is enforcing", "none is needed if containers and the kubelet have their policies; else set it to permissive")
	}
}

// firewall: seed 002, Step_CheckFirewallStatus.
func firewall(r *report) {
	active := r.f.System.Firewall
	switch {
	case active == "":
	case r.t.System().Firewall == spec.PolicyKeep:
		r.warn(active+" is active and stays so", "open the ports of Kubernetes and of the network plugin, or set system.firewall: Off")
	default:
		r.warn(active+" is active (will be turned off, restored on reset)", "set system.firewall: Keep to leave it on")
	}
}

// swap: seed 002, Step_CheckSwapStatus.
func swap(r *report) {
	if len(r.f.System.Swap) == 0 {
		return
	}
	devices := strings.Join(r.f.System.Swap, ", ")
	switch {
	case r.t.System().Swap == spec.PolicyKeep:
		r.warn(fmt.Sprintf("swap is on (%s) and stays so; the kubelet is told to run beside it", devices), "set system.swap: Off to turn it off")
	case r.f.System.Container != "":
		r.warn(fmt.Sprintf("swap is on (%s) and belongs to the machine that the container runs on", devices), "turn it off there, or set system.swap: Keep")
	default:
		r.warn(fmt.Sprintf("swap is on (%s) (will be turned off, restored on reset)", devices), "set system.swap: Keep to leave it on")
	}
}

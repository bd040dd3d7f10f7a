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
		opened := openedPorts(r.t)
		r.warn(fmt.Sprintf("%s is active and stays so; the host needs %s open", active, strings.Join(opened, ", ")), openPorts(active, opened, r.t))
	default:
		r.warn(active+" is active (will be turned off, restored on reset)", "set system.firewall: Keep to leave it on")
	}
}

// openedPorts are those that other hosts, and users, reach the host at, as port/protocol.
func openedPorts(t spec.Target) []string {
	api := fmt.Sprintf("%d/tcp", t.Cluster.ControlPlaneEndpoint.Port)
	etcd := []string{"2379/tcp", "2380/tcp"}
	switch t.Host.Role {
	case spec.RoleEtcd:
		return etcd
	case spec.RoleLoadBalancer:
		return []string{api}
	case spec.RoleControlPlane, spec.RoleWorker:
	}
	var ports []string
	if t.Host.Role == spec.RoleControlPlane {
		ports = append(ports, api)
		if t.Cluster.Etcd.IsStacked() {
			ports = append(ports, etcd...)
		}
	}
	ports = append(ports, fmt.Sprintf("%d/tcp", kubeletPort))
	if t.Cluster.Network.Flannel.Backend == spec.FlannelVXLAN {
		ports = append(ports, "8472/udp")
	}
	return append(ports, "30000-32767/tcp", "30000-32767/udp")
}

// openPorts is how to open them by this firewall manager, and to let through what comes from pods.
func openPorts(manager string, ports []string, t spec.Target) string {
	var commands []string
	if manager == "ufw" {
		for _, p := range ports {
			commands = append(commands, "ufw allow "+strings.Replace(p, "-", ":", 1))
		}
		if t.Host.Role.IsNode() {
			for _, cidr := range t.Cluster.Network.PodCIDRs {
				commands = append(commands, "ufw allow from "+cidr, "ufw route allow from "+cidr, "ufw route allow to "+cidr)
			}
		}
	} else {
		add := "firewall-cmd --permanent"
		for _, p := range ports {
			add += " --add-port=" + p
		}
		commands = append(commands, add)
		if t.Host.Role.IsNode() {
			add = "firewall-cmd --permanent --zone=trusted"
			for _, cidr := range t.Cluster.Network.PodCIDRs {
				add += " --add-source=" + cidr
			}
			commands = append(commands, add)
		}
		commands = append(commands, "firewall-cmd --reload")
	}
	return "unless they are open: " + strings.Join(commands, " && ") + "; or set system.firewall: Off"
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

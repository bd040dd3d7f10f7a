// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Facts are those of a host that a plan for it depends on.
type Facts struct {
	Arch, Container string
	// System is the operating system: ID/VERSION_ID.
	System string
	// Interface is that of the default route.
	Interface     string
	CgroupVersion int32
	// IPv6 is the address of the default interface.
	IPv6          string
	Forwards      string
	MayTuneLimits bool
	// TrackedConnections is how many connections the kernel is to track, or 0 in a container, where that is not ours to say.
	TrackedConnections int32
	// Firewall is the firewall manager that is active.
	Firewall string
	// NetworkManager says that it is active.
	NetworkManager bool
}

// Relevant picks them.
func Relevant(s host.System) Facts {
	return Facts{
		Arch: s.Arch, Container: s.Container, System: s.OSID + "/" + s.OSVersion,
		CgroupVersion: s.CgroupVersion, Interface: s.DefaultInterface,
		IPv6:          s.DefaultIPv6,
		Forwards:      strings.Join(Forwards(s), " ") + "/" + strings.Join(s.Nameservers, " "),
		MayTuneLimits: !slices.Contains(s.MissingCapabilities, "sys_resource"), TrackedConnections: trackedConnections(s),
		Firewall: s.Firewall, NetworkManager: s.NetworkManager,
	}
}

// trackedConnections is kube-proxy's default: 32768 for each processor, at least 131072 and at most 1048576.
func trackedConnections(s host.System) int32 {
	if s.Container != "" {
		return 0
	}
	return min(max(32<<10*s.CPUs, 128<<10), 1<<20)
}

// Forwards are the name servers of a host that pods on it can reach too: not those of a loopback address, which is the pod's own, nor of a
// link-local one, which is the host's interface's and which not every network carries pods' packets to.
func Forwards(s host.System) []string {
	var reachable []string
	for _, n := range append(slices.Clone(s.Nameservers), s.UpstreamNameservers...) {
		a, err := netip.ParseAddr(n)
		own := a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast()
		if err == nil && !own && !slices.Contains(reachable, n) {
			reachable = append(reachable, n)
		}
	}
	return reachable
}

// OwnResolv reports whether pods need another resolv.conf than the host's: it names a server on a loopback address, which
// from within a pod is the pod itself.
func (in Inputs) OwnResolv() bool {
	return slices.ContainsFunc(in.System.Nameservers, func(n string) bool {
		a, err := netip.ParseAddr(n)
		return err == nil && a.IsLoopback()
	})
}

// CgroupDriver is systemd's on a machine of its own; in a container systemd's may not reach the whole hierarchy.
func (in Inputs) CgroupDriver() string {
	if in.System.Container != "" {
		return "cgroupfs"
	}
	return "systemd"
}

// MayTuneLimits reports whether processes may ask for limits above their own.
func (in Inputs) MayTuneLimits() bool { return Relevant(in.System).MayTuneLimits }

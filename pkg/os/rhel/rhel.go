// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rhel is the family of Red Hat Enterprise Linux: those that rebuild it, and the Chinese ones that have its package manager.
package rhel

import "github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"

// Systems are those of the family that hosts may have. Release 8 of Red Hat's, and Kylin V10, have kernels that Kubernetes does not
// take any more.
var Systems = []family.System{
	{ID: "rocky", Name: "Rocky Linux", Releases: []string{"9"}, Seen: family.Simulated},
	{ID: "almalinux", Name: "AlmaLinux", Releases: []string{"9"}, Seen: family.Rendered},
	{ID: "rhel", Name: "Red Hat Enterprise Linux", Releases: []string{"9"}, Seen: family.Rendered},
	{ID: "centos", Name: "CentOS Stream", Releases: []string{"9"}, Seen: family.Rendered},
	{ID: "openEuler", Name: "openEuler", Releases: []string{"22.03", "24.03"}, Seen: family.Rendered},
	{ID: "kylin", Name: "Kylin Linux Advanced Server", Releases: []string{"V11"}, Seen: family.Rendered},
}

// Family is a system of the family.
type Family struct {
	// el says that it is a release of Red Hat's own, or a rebuild of one.
	el bool
}

var _ family.Family = Family{}

// Of is a release of one of Systems.
func Of(s family.System, _ string) family.Family {
	return Family{el: s.ID != "openEuler" && s.ID != "kylin"}
}

// Name is Red Hat's.
func (Family) Name() string { return "Red Hat" }

// Packages are dnf's.
func (Family) Packages() family.Manager {
	return family.Manager{Kind: family.RPMs, Remove: "dnf remove"}
}

// Software is what the family's repositories call it. Since release 9 Red Hat has one package of iptables alone, that of nftables.
func (f Family) Software(p family.Program) family.Software {
	switch {
	case p == family.Curl:
		// Each installation has /usr/bin/curl, many of them from curl-minimal, which curl would have to replace.
		return family.Software{}
	case p == family.IPTables && f.el:
		return family.Software{Packages: []string{"iptables-nft"}}
	case p == family.HAProxy:
		return family.Software{
			Packages:  []string{"haproxy"},
			Leftovers: []string{"/run/haproxy.pid", "/run/haproxy-master.sock", "/var/lib/haproxy"},
		}
	case p == family.NginxProxy:
		return family.Software{Packages: []string{"nginx", "nginx-mod-stream"}, Leftovers: []string{"/var/lib/nginx"}}
	}
	return family.Software{Packages: []string{string(p)}}
}

// Nginx is as nginx.spec has it.
func (Family) Nginx() family.Nginx {
	return family.Nginx{User: "nginx", Modules: "/usr/share/nginx/modules/*.conf"}
}

// Swap is what zram-generator makes on systems that have it, unless its configuration is empty (zram-generator.conf(5)).
func (Family) Swap() family.Swap {
	return family.Swap{Emptied: []string{"/etc/systemd/zram-generator.conf"}}
}

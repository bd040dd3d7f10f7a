// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debian is the family of Debian, with Ubuntu in it.
package debian

import "github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"

// Systems are those of the family that hosts may have.
var Systems = []family.System{
	{ID: "debian", Name: "Debian", Releases: []string{"12", "13"}, Seen: family.Real},
	{ID: "ubuntu", Name: "Ubuntu", Releases: []string{"22.04", "24.04"}, Seen: family.Simulated},
}

// Family is a system of the family. Releases do not differ in what is asked.
type Family struct{}

var _ family.Family = Family{}

// Of is a release of one of Systems.
func Of(family.System, string) family.Family { return Family{} }

// Name is Debian's.
func (Family) Name() string { return "Debian" }

// Packages are apt's.
func (Family) Packages() family.Manager {
	return family.Manager{Kind: family.Debs, Remove: "apt-get purge"}
}

// Software is called by Debian what its makers call it, but for nginx, which comes in parts.
func (Family) Software(p family.Program) family.Software {
	switch p {
	case family.HAProxy:
		return family.Software{
			Packages:  []string{"haproxy"},
			Leftovers: []string{"/run/haproxy", "/run/haproxy.pid", "/run/haproxy-master.sock", "/var/lib/haproxy"},
		}
	case family.NginxProxy:
		return family.Software{Packages: []string{"nginx", "libnginx-mod-stream"}, Leftovers: []string{"/var/www"}}
	}
	return family.Software{Packages: []string{string(p)}}
}

// Nginx is as debian/control of nginx-common has it. The images of pods are made of Debian too.
func (Family) Nginx() family.Nginx {
	return family.Nginx{User: "www-data", Modules: "/etc/nginx/modules-enabled/*.conf"}
}

// Swap is made by dphys-swapfile on Raspberry Pis, and by zram-tools or systemd-zram-generator where these are installed.
func (Family) Swap() family.Swap {
	return family.Swap{Units: []string{"dphys-swapfile.service", "zramswap.service"}}
}

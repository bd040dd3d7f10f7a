// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func target(name string, role spec.Role, address string) spec.Target {
	t := spec.Target{
		ClusterName: "prod", KubernetesVersion: "v1.36.3",
		Host: spec.Host{Name: name, Role: role, Address: address},
	}
	t.Default()
	return t
}

// owner is whose the hosts are.
var owner = host.Owner{Cluster: "prod", Authority: "sha256:prod", Role: "Worker", Host: "node1"}

// fit are the facts of a host that nothing is wrong with.
func fit() *host.Facts {
	return &host.Facts{
		System: host.System{
			Hostname: "node1", OSID: "debian", OSVersion: "12", Arch: "amd64", Kernel: "6.1.0-31-amd64", CgroupVersion: 2,
			CPUs: 2, MemoryBytes: 4 << 30, DiskFreeBytes: 50 << 30, DiskTotalBytes: 100 << 30, User: "ops", Root: true,
			Addresses: []string{"172.16.0.2/24"}, HostnameAddresses: []string{"172.16.0.2"},
			Nameservers: []string{"172.16.0.1"}, TimeSync: "chrony.service",
		},
		Paths: map[string]host.Path{
			"/etc/resolv.conf": {Exists: true, Size: 20}, "/etc/kubernetes": {}, "/var/lib/etcd": {},
			"/etc/machine-id":                 {Exists: true, Content: []byte("0123456789abcdef0123456789abcdef\n")},
			"/run/containerd/containerd.sock": {}, "/var/lib/containerd": {}, "/etc/containerd/config.toml": {},
			"/etc/systemd/system/containerd.service": {}, "/usr/local/bin/containerd": {}, "/usr/local/bin/runc": {},
		},
		Units: map[string]host.UnitState{
			"kubelet.service": {Load: "not-found"}, "containerd.service": {Load: "not-found"}, "docker.service": {Load: "not-found"},
		},
		Modules: map[string]bool{"overlay": true, "br_netfilter": true, "nf_conntrack": true},
		Ports:   map[int32]host.Listener{},
		Commands: map[string]host.Result{
			"preflight/processes":             {Stdout: []byte("bash\nsshd\nsystemd\n")},
			"preflight/modprobe/overlay":      {},
			"preflight/modprobe/br_netfilter": {},
			"preflight/modprobe/nf_conntrack": {},
		},
	}
}

// dualStack makes the cluster dual stack, and the host fit for it.
func dualStack(t *spec.Target, f *host.Facts) {
	t.Cluster.Network.PodCIDRs = append(t.Cluster.Network.PodCIDRs, "fd85:ee78:d8a6:8607::1:0/112")
	t.Cluster.Network.ServiceCIDRs = append(t.Cluster.Network.ServiceCIDRs, "fd85:ee78:d8a6:8607::1000/116")
	f.System.Addresses = append(f.System.Addresses, "2001:db8::2/64")
	f.System.DefaultInterface, f.System.DefaultIPv6 = "eth0", "2001:db8::2"
	f.Commands["preflight/ipv6-routes"] = host.Result{Stdout: []byte("default via 2001:db8::1 dev eth0 metric 1024 pref medium\n")}
}

// otherInterface has the default route by another interface than the one with the Node's address.
func otherInterface(_ *spec.Target, f *host.Facts) {
	f.System.DefaultInterface = "eth0"
	f.Commands["preflight/node-interface"] = host.Result{Stdout: []byte("3: vlan7@eth1    inet 172.16.0.2/24 brd 172.16.0.255 scope global vlan7\\       valid_lft forever preferred_lft forever\n")}
}

// balancing makes the host a load balancer's, in a dual stack cluster with IPv6 first.
func balancing(t *spec.Target, f *host.Facts) {
	dualStack(t, f)
	slices.Reverse(t.Cluster.Network.PodCIDRs)
	slices.Reverse(t.Cluster.Network.ServiceCIDRs)
	t.Host.Role, t.Host.InternalAddresses = spec.RoleLoadBalancer, []string{"2001:db8::2", "172.16.0.2"}
}

// holds gives the cluster such an address, and the host a role in which it may be the one to hold it.
func holds(by spec.LoadBalancerType, role spec.Role, address string) func(*spec.Target, *host.Facts) {
	return func(t *spec.Target, _ *host.Facts) {
		t.Host.Role, t.Cluster.LoadBalancer.Type, t.Cluster.ControlPlaneEndpoint.Address = role, by, address
		t.Default()
	}
}

// fronted makes the host a load balancer's, with nginx and keepalived.
func fronted(t *spec.Target, f *host.Facts) {
	t.Cluster.LoadBalancer.Keepalived.Proxy = spec.LoadBalancerNginx
	holds(spec.LoadBalancerKeepalived, spec.RoleLoadBalancer, "172.16.0.100")(t, f)
}

// scenario is a host with something wrong.
type scenario struct {
	name   string
	worker bool
	spoil  func(t *spec.Target, f *host.Facts)
}

func scenarios() []scenario {
	return []scenario{
		{name: "nothing is wrong", spoil: func(*spec.Target, *host.Facts) {}},
		{name: "no sudo", spoil: func(_ *spec.Target, f *host.Facts) { f.System.Root = false }},
		{name: "unknown system", spoil: func(_ *spec.Target, f *host.Facts) { f.System.OSID, f.System.OSVersion = "centos", "7" }},
		{name: "no os-release", spoil: func(_ *spec.Target, f *host.Facts) { f.System.OSID, f.System.OSVersion = "", "" }},
		{name: "old release", spoil: func(_ *spec.Target, f *host.Facts) { f.System.OSVersion = "10" }},
		{name: "unknown architecture", spoil: func(_ *spec.Target, f *host.Facts) { f.System.Arch = "riscv64" }},
		{name: "other architecture than declared", spoil: func(t *spec.Target, _ *host.Facts) { t.Host.Arch = spec.ArchARM64 }},
		{name: "a small load balancer", spoil: func(t *spec.Target, f *host.Facts) {
			t.Host.Role = spec.RoleLoadBalancer
			f.System.CPUs, f.System.MemoryBytes, f.System.CgroupVersion = 1, 500_000_000, 1
			f.System.DiskFreeBytes, f.System.DiskTotalBytes, f.Modules = 2<<30, 20<<30, nil
			f.Ports[10250] = host.Listener{Process: "other", PID: 1}
		}},
		{name: "a load balancer that is too small, whose port is taken", spoil: func(t *spec.Target, f *host.Facts) {
			t.Host.Role, f.System.MemoryBytes, f.System.DiskFreeBytes = spec.RoleLoadBalancer, 200_000_000, 500_000_000
			f.Ports[6443] = host.Listener{Process: "nginx", PID: 7}
		}},
		{name: "an etcd host that has one", spoil: func(t *spec.Target, f *host.Facts) {
			t.Host.Role = spec.RoleEtcd
			f.Paths["/var/lib/etcd"] = host.Path{Exists: true, Entries: 1}
			f.Ports[2379], f.Ports[6443] = host.Listener{Process: "etcd", PID: 7}, host.Listener{Process: "other", PID: 8}
		}},
		{name: "a control plane host beside etcd's own", spoil: func(t *spec.Target, f *host.Facts) {
			t.Cluster.Etcd = spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"etcd1"}}, DataDir: "/var/lib/etcd"}
			f.Paths["/var/lib/etcd"] = host.Path{Exists: true, Entries: 1}
			f.Ports[2379] = host.Listener{Process: "etcd", PID: 7}
		}},
		{name: "no IPVS in the kernel", spoil: func(t *spec.Target, f *host.Facts) {
			t.Cluster.Kubernetes.Proxy.Mode = spec.ProxyIPVS
			f.Commands["preflight/modprobe/ip_vs"], f.Commands["preflight/modprobe/ip_vs_rr"] = host.Result{}, host.Result{ExitCode: 1}
		}},
		{name: "one CPU", spoil: func(_ *spec.Target, f *host.Facts) { f.System.CPUs = 1 }},
		{name: "a control plane with 3.7 GiB, some of 4 GB kept back", spoil: func(_ *spec.Target, f *host.Facts) { f.System.MemoryBytes = 3_810_000_000 }},
		{name: "a control plane with 2 GiB", spoil: func(_ *spec.Target, f *host.Facts) { f.System.MemoryBytes = 2 << 30 }},
		{name: "a worker with 2 GiB", worker: true, spoil: func(_ *spec.Target, f *host.Facts) { f.System.MemoryBytes = 2 << 30 }},
		{name: "a worker with 1 GiB", worker: true, spoil: func(_ *spec.Target, f *host.Facts) { f.System.MemoryBytes = 1 << 30 }},
		{name: "disk full", spoil: func(_ *spec.Target, f *host.Facts) { f.System.DiskFreeBytes = 3 << 30 }},
		{name: "disk nearly full", spoil: func(_ *spec.Target, f *host.Facts) { f.System.DiskFreeBytes = 10 << 30 }},
		{name: "disk nearly full with what we put there", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.DiskFreeBytes, f.Owner = 1<<30, &owner
		}},
		{name: "old kernel", spoil: func(_ *spec.Target, f *host.Facts) { f.System.Kernel = "4.19.0-27-amd64" }},
		{name: "kernel too old for nftables", spoil: func(t *spec.Target, f *host.Facts) {
			t.Cluster.Kubernetes.Proxy.Mode, f.System.Kernel = spec.ProxyNFTables, "5.10.0-33-amd64"
		}},
		{name: "kernel too old for nftables, on a load balancer", spoil: func(t *spec.Target, f *host.Facts) {
			t.Host.Role = spec.RoleLoadBalancer
			t.Cluster.Kubernetes.Proxy.Mode, f.System.Kernel = spec.ProxyNFTables, "5.10.0-33-amd64"
		}},
		{name: "unreadable kernel", spoil: func(_ *spec.Target, f *host.Facts) { f.System.Kernel = "custom" }},
		{name: "module not loaded but at hand", spoil: func(_ *spec.Target, f *host.Facts) { f.Modules["overlay"] = false }},
		{name: "module that cannot be had", spoil: func(t *spec.Target, f *host.Facts) {
			t.Cluster.System.Modules = []string{"ip_vs"}
			f.Modules["br_netfilter"] = false
			f.Commands["preflight/modprobe/br_netfilter"] = host.Result{ExitCode: 1}
		}},
		{name: "connections that cannot be tracked", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Modules["nf_conntrack"], f.Commands["preflight/modprobe/nf_conntrack"] = false, host.Result{ExitCode: 1}
		}},
		{name: "connections that a container does not see tracked", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.Container = "docker"
			f.Modules["nf_conntrack"], f.Commands["preflight/modprobe/nf_conntrack"] = false, host.Result{ExitCode: 1}
		}},
		{name: "cgroup v1", spoil: func(_ *spec.Target, f *host.Facts) { f.System.CgroupVersion = 1 }},
		{name: "a container without rights", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.Container, f.System.MissingCapabilities = "docker", []string{"net_admin", "sys_admin", "sys_resource"}
		}},
		{name: "another name", spoil: func(_ *spec.Target, f *host.Facts) { f.System.Hostname = "Node_1" }},
		{name: "name resolves to loopback", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.HostnameAddresses = []string{"127.0.1.1"}
		}},
		{name: "address of no interface", spoil: func(t *spec.Target, _ *host.Facts) {
			t.Host.InternalAddresses = []string{"10.0.0.9"}
		}},
		{name: "address translated from outside", spoil: func(t *spec.Target, _ *host.Facts) {
			t.Host.Address, t.Host.InternalAddresses = "203.0.113.7", []string{"172.16.0.2"}
		}},
		{name: "an address of another interface than the default route's", spoil: otherInterface},
		{name: "an address of another interface in a declared network", spoil: func(t *spec.Target, f *host.Facts) {
			otherInterface(t, f)
			t.Cluster.Network.HostCIDRs = []string{"172.16.0.0/24"}
		}},
		{name: "an address of another interface of a host in use", spoil: func(t *spec.Target, f *host.Facts) {
			otherInterface(t, f)
			f.Owner = &owner
		}},
		{name: "a dual stack host", spoil: dualStack},
		{name: "a dual stack host whose second address is declared", spoil: func(t *spec.Target, f *host.Facts) {
			dualStack(t, f)
			t.Host.InternalAddresses, f.System.DefaultIPv6 = []string{"172.16.0.2", "2001:db8::2"}, ""
		}},
		{name: "no IPv6 address in a dual stack cluster", spoil: func(t *spec.Target, f *host.Facts) {
			dualStack(t, f)
			f.System.Addresses, f.System.DefaultIPv6 = []string{"172.16.0.2/24"}, ""
		}},
		{name: "a second address of no interface", spoil: func(t *spec.Target, f *host.Facts) {
			dualStack(t, f)
			t.Host.InternalAddresses = []string{"172.16.0.2", "2001:db8::9"}
		}},
		{name: "no IPv6 default route by the default interface", spoil: func(t *spec.Target, f *host.Facts) {
			dualStack(t, f)
			f.Commands["preflight/ipv6-routes"] = host.Result{Stdout: []byte("default via fe80::1 dev eth1 proto ra metric 1024\n")}
		}},
		{name: "no IPv6 default route, and Pods' packets leave by the Node's address", spoil: func(t *spec.Target, f *host.Facts) {
			dualStack(t, f)
			t.Cluster.Network.Plugin, f.Commands["preflight/ipv6-routes"] = spec.NetworkCalico, host.Result{}
		}},
		{name: "no IPv6 default route, and networks of hosts are declared", spoil: func(t *spec.Target, f *host.Facts) {
			dualStack(t, f)
			t.Cluster.Network.HostCIDRs = []string{"172.16.0.0/24", "2001:db8::/64"}
			f.Commands["preflight/ipv6-routes"] = host.Result{}
		}},
		{name: "IPv6 turned off in a dual stack cluster", spoil: func(t *spec.Target, f *host.Facts) {
			dualStack(t, f)
			f.Sysctls = map[string]string{"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"}
		}},
		{name: "a load balancer of a dual stack cluster", spoil: func(t *spec.Target, f *host.Facts) {
			dualStack(t, f)
			t.Host.Role, f.System.DefaultIPv6, f.Commands["preflight/ipv6-routes"] = spec.RoleLoadBalancer, "", host.Result{}
		}},
		{name: "a load balancer with IPv6, of a cluster that begins with it", spoil: balancing},
		{name: "a load balancer without IPv6, of a cluster that begins with it", spoil: func(t *spec.Target, f *host.Facts) {
			balancing(t, f)
			f.System.Addresses = []string{"172.16.0.2/24"}
		}},
		{name: "a virtual address of the host's network", spoil: holds(spec.LoadBalancerKeepalived, spec.RoleLoadBalancer, "172.16.0.100")},
		{name: "a virtual address of another network", spoil: holds(spec.LoadBalancerKeepalived, spec.RoleLoadBalancer, "172.16.1.100")},
		{name: "a virtual address that others hold", spoil: holds(spec.LoadBalancerKeepalived, spec.RoleControlPlane, "172.16.1.100")},
		{name: "kube-vip's address of another network", spoil: holds(spec.LoadBalancerKubeVIP, spec.RoleControlPlane, "172.16.1.100")},
		{name: "an address that hosts do not take over", spoil: holds(spec.LoadBalancerExternal, spec.RoleControlPlane, "172.16.1.100")},
		{name: "a load balancer of others, with a site", spoil: func(t *spec.Target, f *host.Facts) {
			fronted(t, f)
			f.Units["nginx.service"] = host.UnitState{Load: "loaded", Active: "active", File: "enabled"}
			f.Paths["/var/www"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 3}
		}},
		{name: "a keepalived of others, which is stopped, beside a site", spoil: func(t *spec.Target, f *host.Facts) {
			fronted(t, f)
			f.Units["keepalived.service"] = host.UnitState{Load: "loaded", Active: "inactive", File: "enabled"}
			f.Paths["/etc/keepalived/keepalived.conf"], f.Paths["/var/www"] = host.Path{Exists: true}, host.Path{Exists: true, Mode: fs.ModeDir, Entries: 1}
		}},
		{name: "what a load balancer of others left, on another system", spoil: func(t *spec.Target, f *host.Facts) {
			fronted(t, f)
			f.System.OSID, f.System.OSVersion = "rocky", "9.5"
			f.Paths["/var/lib/nginx"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 1}
			f.Paths["/var/www"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 3}
		}},
		{name: "a load balancer's packages, which nobody uses", spoil: func(t *spec.Target, f *host.Facts) {
			fronted(t, f)
			f.Units["nginx.service"] = host.UnitState{Load: "loaded", Active: "inactive", File: "disabled"}
			f.Units["keepalived.service"] = host.UnitState{Load: "masked", Active: "inactive", File: "masked"}
			f.Units["haproxy.service"] = host.UnitState{Load: "loaded", Active: "active", File: "enabled"} // beside it, at ports of its own
			f.Paths["/etc/keepalived/keepalived.conf"] = host.Path{Exists: true}                           // its package's
			f.Paths["/var/www"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 1}
		}},
		{name: "places of a load balancer, which are free", spoil: func(t *spec.Target, f *host.Facts) {
			fronted(t, f)
			f.Units["nginx.service"] = host.UnitState{Load: "not-found", Active: "inactive"}
			f.Paths["/etc/keepalived/keepalived.conf"], f.Paths["/var/www"] = host.Path{}, host.Path{Exists: true, Mode: fs.ModeDir}
		}},
		{name: "our own load balancer", spoil: func(t *spec.Target, f *host.Facts) {
			fronted(t, f)
			f.Units["nginx.service"] = host.UnitState{Load: "loaded", Active: "active", File: "enabled"}
			f.Paths["/etc/keepalived/keepalived.conf"], f.Owner = host.Path{Exists: true}, &owner
		}},
		{name: "a site on a worker", worker: true, spoil: func(t *spec.Target, f *host.Facts) {
			fronted(t, f)
			t.Host.Role = spec.RoleWorker
			f.Units["nginx.service"] = host.UnitState{Load: "loaded", Active: "active", File: "enabled"}
		}},
		{name: "host in the network of pods", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.Addresses = append(f.System.Addresses, "10.233.65.1/24")
		}},
		{name: "our own network of pods", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.Addresses, f.Owner = append(f.System.Addresses, "10.233.65.1/24"), &owner
		}},
		{name: "clock a little ahead", spoil: func(_ *spec.Target, f *host.Facts) { f.ClockSkew = 1200 * time.Millisecond }},
		{name: "clock far behind", spoil: func(_ *spec.Target, f *host.Facts) { f.ClockSkew = -90 * time.Second }},
		{name: "name resolves to the host itself alone", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.HostnameAddresses = []string{"127.0.0.1"}
		}},
		{name: "no NTP", spoil: func(_ *spec.Target, f *host.Facts) { f.System.TimeSync = "" }},
		{name: "no NTP, no resolv.conf and a name that leads nowhere, all ignored", spoil: func(t *spec.Target, f *host.Facts) {
			f.System.TimeSync, f.Paths["/etc/resolv.conf"], f.System.HostnameAddresses = "", host.Path{}, []string{"::1"}
			t.Cluster.System.IgnorePreflightErrors = []spec.PreflightCheck{spec.CheckTime, spec.CheckHostname}
			t.Node.System.IgnorePreflightErrors = []spec.PreflightCheck{spec.CheckResolv}
		}},
		{name: "no NTP and no resolv.conf on a host in use", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.TimeSync, f.Paths["/etc/resolv.conf"], f.Owner = "", host.Path{}, &owner
		}},
		{name: "no NTP in a container", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.TimeSync, f.System.Container = "", "docker"
		}},
		{name: "a host that is too slow to say", spoil: func(_ *spec.Target, f *host.Facts) {
			slow := host.Result{ExitCode: 124, Stopped: 10 * time.Second}
			f.Commands["preflight/processes"], f.Commands["preflight/modprobe/br_netfilter"], f.Modules["br_netfilter"] = slow, slow, false
		}},
		{name: "another Kubernetes", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Paths["/etc/kubernetes"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 4}
			f.Paths["/var/lib/etcd"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 1}
			f.Units["kubelet.service"] = host.UnitState{Load: "loaded", Active: "active"}
			f.Commands["preflight/processes"] = host.Result{Stdout: []byte("kube-apiserver\nkubelet\npause\nsshd\n")}
		}},
		{name: "an empty /etc/kubernetes", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Paths["/etc/kubernetes"] = host.Path{Exists: true, Mode: fs.ModeDir}
		}},
		{name: "our own Kubernetes", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Paths["/etc/kubernetes"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 4}
			f.Units["kubelet.service"] = host.UnitState{Load: "loaded", Active: "active"}
			f.Ports[6443] = host.Listener{Process: "kube-apiserver", PID: 1}
			f.Owner = &owner
		}},
		{name: "a Kubernetes that another run of kubexm left", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Paths["/etc/kubernetes"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 4}
			f.Journal, f.UndoEntries = map[string]host.JournalEntry{"node1/os/system/sysctls": {}}, 40
		}},
		{name: "a Kubernetes of another owner", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Paths["/etc/kubernetes"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 4}
			other := owner
			other.Authority = "sha256:another"
			f.Owner = &other
		}},
		{name: "Debian's Docker and its containerd", worker: true, spoil: func(_ *spec.Target, f *host.Facts) {
			f.Units["containerd.service"] = host.UnitState{Load: "loaded", Active: "active"}
			f.Units["docker.service"] = host.UnitState{Load: "loaded", Active: "active"}
			f.Paths["/run/containerd/containerd.sock"] = host.Path{Exists: true, Mode: fs.ModeSocket}
			f.Paths["/etc/containerd/config.toml"] = host.Path{Exists: true}
			f.Paths["/var/lib/containerd"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 5}
			f.Commands["preflight/processes"] = host.Result{Stdout: []byte("containerd\ndockerd\n")}
		}},
		{name: "a containerd that does not run", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Units["containerd.service"] = host.UnitState{Load: "loaded", Active: "inactive"}
		}},
		{name: "a containerd that somebody started", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Paths["/run/containerd/containerd.sock"] = host.Path{Exists: true, Mode: fs.ModeSocket}
			f.Paths["/usr/local/bin/containerd"], f.Paths["/usr/local/bin/runc"] = host.Path{Exists: true}, host.Path{Exists: true}
			f.Commands["preflight/processes"] = host.Result{Stdout: []byte("containerd\nsshd\n")}
		}},
		{name: "a socket that nobody listens to", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Paths["/run/containerd/containerd.sock"] = host.Path{Exists: true, Mode: fs.ModeSocket}
		}},
		{name: "what a containerd left", spoil: func(t *spec.Target, f *host.Facts) {
			t.Cluster.ContainerRuntime.DataDir = "/data/containerd"
			f.Paths["/data/containerd"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 2}
		}},
		{name: "a Docker with a containerd of its own", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Units["docker.service"] = host.UnitState{Load: "loaded", Active: "active"}
			f.Commands["preflight/processes"] = host.Result{Stdout: []byte("containerd\ndockerd\n")}
		}},
		{name: "a load balancer beside Docker", spoil: func(t *spec.Target, f *host.Facts) {
			t.Host.Role = spec.RoleLoadBalancer
			f.Units["containerd.service"] = host.UnitState{Load: "loaded", Active: "active"}
			f.Units["docker.service"] = host.UnitState{Load: "loaded", Active: "active"}
		}},
		{name: "our own containerd", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Units["containerd.service"] = host.UnitState{Load: "loaded", Active: "active"}
			f.Paths["/usr/local/bin/containerd"], f.Owner = host.Path{Exists: true}, &owner
		}},
		{name: "a CRI-O where containerd is to be", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Units["crio.service"] = host.UnitState{Load: "loaded", Active: "active"}
		}},
		{name: "Docker and its containerd where CRI-O is to be", worker: true, spoil: func(t *spec.Target, f *host.Facts) {
			t.Cluster.ContainerRuntime = spec.ContainerRuntime{Type: spec.ContainerRuntimeCRIO, DataDir: "/var/lib/containers"}
			f.Units["containerd.service"] = host.UnitState{Load: "loaded", Active: "active"}
			f.Units["docker.service"] = host.UnitState{Load: "loaded", Active: "active"}
			f.Paths["/var/lib/containerd"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 5}
		}},
		{name: "a CRI-O of others", spoil: func(t *spec.Target, f *host.Facts) {
			t.Cluster.ContainerRuntime = spec.ContainerRuntime{Type: spec.ContainerRuntimeCRIO, DataDir: "/var/lib/containers"}
			f.Paths["/run/crio/crio.sock"] = host.Path{Exists: true, Mode: fs.ModeSocket}
			f.Paths["/var/lib/containers"] = host.Path{Exists: true, Mode: fs.ModeDir, Entries: 2}
			f.Commands["preflight/processes"] = host.Result{Stdout: []byte("crio\nsshd\n")}
		}},
		{name: "taken ports", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Ports[6443], f.Ports[10250] = host.Listener{Process: "nginx", PID: 711}, host.Listener{}
		}},
		{name: "a port that workers do not need", worker: true, spoil: func(_ *spec.Target, f *host.Facts) {
			f.Ports[6443] = host.Listener{Process: "nginx", PID: 711}
		}},
		{name: "no resolv.conf", spoil: func(_ *spec.Target, f *host.Facts) { f.Paths["/etc/resolv.conf"] = host.Path{} }},
		{name: "no name servers", spoil: func(_ *spec.Target, f *host.Facts) { f.System.Nameservers = nil }},
		{name: "only a stub", spoil: func(_ *spec.Target, f *host.Facts) { f.System.Nameservers = []string{"127.0.0.11"} }},
		{name: "systemd-resolved with upstream", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.Nameservers, f.System.UpstreamNameservers = []string{"127.0.0.53"}, []string{"172.16.0.1"}
		}},
		{name: "a stub before a link-local name server", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.Nameservers, f.System.UpstreamNameservers = []string{"127.0.0.53"}, []string{"169.254.169.254"}
		}},
		{name: "a load balancer with no more than a stub", spoil: func(t *spec.Target, f *host.Facts) {
			t.Host.Role, f.System.Nameservers = spec.RoleLoadBalancer, []string{"127.0.0.53"}
		}},
		{name: "a stub, and servers declared", spoil: func(t *spec.Target, f *host.Facts) {
			f.System.Nameservers = []string{"127.0.0.11"}
			t.Cluster.DNS.CoreDNS.UpstreamServers = []string{"172.16.0.1"}
		}},
		{name: "SELinux", spoil: func(_ *spec.Target, f *host.Facts) { f.System.SELinux = "Enforcing" }},
		{name: "firewall", spoil: func(_ *spec.Target, f *host.Facts) { f.System.Firewall = spec.UFW }},
		{name: "firewall of a host of ours", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.Firewall, f.Owner = spec.UFW, &owner
			refuse(f, "ip filter INPUT", "ip6 filter INPUT")
		}},
		{name: "firewall of a worker", worker: true, spoil: func(_ *spec.Target, f *host.Facts) { f.System.Firewall = spec.Firewalld }},
		{name: "firewall to be turned off", spoil: func(t *spec.Target, f *host.Facts) {
			f.System.Firewall, t.Node.System.Firewall = spec.UFW, spec.FirewallOff
		}},
		{name: "firewall to be kept", spoil: func(t *spec.Target, f *host.Facts) {
			f.System.Firewall, t.Node.System.Firewall = spec.UFW, spec.FirewallKeep
		}},
		{name: "firewalld to be kept", spoil: func(t *spec.Target, f *host.Facts) {
			f.System.Firewall, t.Node.System.Firewall = spec.Firewalld, spec.FirewallKeep
		}},
		{name: "firewall of a load balancer, to be kept", spoil: func(t *spec.Target, f *host.Facts) {
			f.System.Firewall, t.Node.System.Firewall, t.Host.Role = spec.UFW, spec.FirewallKeep, spec.RoleLoadBalancer
			t.Members = []spec.Member{{Name: "lb2", Role: spec.RoleLoadBalancer, Address: "172.16.0.9"}}
		}},
		{name: "rules of the host's own", spoil: func(_ *spec.Target, f *host.Facts) { refuse(f, "inet filter input") }},
		{name: "rules of the host's own, which let the ports in", spoil: func(t *spec.Target, f *host.Facts) {
			refuse(f, "inet filter input")
			t.Node.System.IgnorePreflightErrors = []spec.PreflightCheck{spec.CheckFirewall}
		}},
		{name: "rules of the host's own, to be kept", worker: true, spoil: func(t *spec.Target, f *host.Facts) {
			refuse(f, "inet filter input")
			t.Node.System.Firewall = spec.FirewallKeep
		}},
		{name: "rules beside firewalld's", worker: true, spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.Firewall = spec.Firewalld
			refuse(f, "inet firewalld filter_INPUT", "ip filter INPUT")
		}},
		{name: "the firewall does not answer", spoil: func(_ *spec.Target, f *host.Facts) {
			f.Commands["preflight/refusing-chains"] = host.Result{Stopped: host.QueryTimeout}
		}},
		{name: "swap", spoil: func(_ *spec.Target, f *host.Facts) { f.System.Swap = []string{"/dev/sdb2", "/swapfile"} }},
		{name: "swap to be kept", spoil: func(t *spec.Target, f *host.Facts) {
			f.System.Swap, t.Cluster.System.Swap = []string{"/swapfile"}, spec.PolicyKeep
		}},
		{name: "swap of a container's machine", spoil: func(_ *spec.Target, f *host.Facts) {
			f.System.Swap, f.System.Container = []string{"/dev/sdb2"}, "docker"
		}},
	}
}

// refuse is what a host answers whose chains refuse what they do not name.
func refuse(f *host.Facts, chains ...string) {
	f.Commands["preflight/refusing-chains"] = host.Result{Stdout: []byte(strings.Join(chains, "\n") + "\n")}
}

// TestMessages keeps every message of every check in a file that a person can read.
func TestMessages(t *testing.T) {
	var got strings.Builder
	for _, s := range scenarios() {
		role := spec.RoleControlPlane
		if s.worker {
			role = spec.RoleWorker
		}
		on, f := target("node1", role, "172.16.0.2"), fit()
		s.spoil(&on, f)
		fmt.Fprintf(&got, "%s\n", s.name)
		write(&got, preflight.Check(on, f, host.Ownership{Owner: owner}))
	}
	golden.File(t, "testdata/messages.golden", got.String())
}

func write(w *strings.Builder, problems []preflight.Problem) {
	for _, p := range problems {
		fmt.Fprintf(w, "  %-7s  %s\n           %s\n           → %s\n", p.Severity, p.Check, p.Cause, p.Remedy)
	}
	w.WriteString("\n")
}

// TestCluster: what is wrong with hosts only in view of each other.
func TestCluster(t *testing.T) {
	other := func(change func(*host.Facts)) *host.Facts {
		f := fit()
		f.System.Hostname, f.System.Addresses = "node2", []string{"172.16.0.3/24"}
		f.Paths["/etc/machine-id"] = host.Path{Exists: true, Content: []byte("fedcba9876543210fedcba9876543210\n")}
		change(f)
		return f
	}
	var got strings.Builder
	for _, c := range []struct {
		name   string
		second *host.Facts
	}{
		{"two hosts", other(func(*host.Facts) {})},
		{"one does not answer", nil},
		{"one machine by two names", fit()},
		{"a clone", other(func(f *host.Facts) { f.Paths["/etc/machine-id"] = fit().Paths["/etc/machine-id"] })},
		{"no machine IDs", other(func(f *host.Facts) { delete(f.Paths, "/etc/machine-id") })},
		{"the other's address", other(func(f *host.Facts) { f.System.Addresses = append(f.System.Addresses, "172.16.0.2/24") })},
	} {
		first, second := target("node1", spec.RoleControlPlane, "172.16.0.2"), target("node2", spec.RoleWorker, "172.16.0.3")
		problems := preflight.CheckCluster([]spec.Target{second, first}, map[string]*host.Facts{"node1": fit(), "node2": c.second})
		fmt.Fprintf(&got, "%s\n", c.name)
		write(&got, problems)
	}
	golden.File(t, "testdata/cluster.golden", got.String())
}

// TestQuery: what Check reads is what Query asks.
func TestQuery(t *testing.T) {
	q := preflight.Query(target("node1", spec.RoleControlPlane, "172.16.0.2"))
	var asked []string
	for _, p := range q.Paths {
		asked = append(asked, p.Path)
	}
	asked = append(asked, q.Units...)
	asked = append(asked, q.Modules...)
	for _, c := range q.Commands {
		asked = append(asked, c.ID)
	}
	for _, port := range q.Ports {
		asked = append(asked, fmt.Sprint(port))
	}
	known := fit()
	for path := range known.Paths {
		if !strings.Contains(strings.Join(asked, " "), path) {
			t.Errorf("path %s is read but not asked for", path)
		}
	}
	for id := range known.Commands {
		if !strings.Contains(strings.Join(asked, " "), id) {
			t.Errorf("command %s is read but not asked for", id)
		}
	}
	for _, port := range []string{"6443", "2379", "2380", "10250", "10257", "10259"} {
		if !strings.Contains(strings.Join(asked, " "), port) {
			t.Errorf("port %s is not asked", port)
		}
	}
	for _, p := range q.Paths {
		if p.Content && p.Path != "/etc/machine-id" {
			t.Errorf("the content of %s is asked", p.Path)
		}
	}
}

// TestQueryOfLoadBalancers: units and paths of what a load balancer host is to run are asked, whichever its operating system turns out
// to be.
func TestQueryOfLoadBalancers(t *testing.T) {
	on, f := target("lb1", spec.RoleLoadBalancer, "172.16.0.2"), fit()
	fronted(&on, f)
	q := preflight.Query(on)
	asked := slices.Clone(q.Units)
	for _, p := range q.Paths {
		asked = append(asked, p.Path)
	}
	for _, want := range []string{"nginx.service", "keepalived.service", "/etc/keepalived/keepalived.conf", "/var/www", "/var/lib/nginx"} {
		if !slices.Contains(asked, want) {
			t.Errorf("%s is not asked for", want)
		}
	}
}

func TestFailed(t *testing.T) {
	warning, failure := preflight.Problem{Severity: preflight.Warning}, preflight.Problem{Severity: preflight.Error}
	if preflight.Failed(nil) || preflight.Failed([]preflight.Problem{warning}) || !preflight.Failed([]preflight.Problem{warning, failure}) {
		t.Error("Failed must report errors, and only these")
	}
}

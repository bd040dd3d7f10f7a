// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package command

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// exitUnfit is the program's exit code for hosts that are not fit.
const exitUnfit = 3

// TestPreflight makes a real host unfit in each way that a container can be, and wants the program to stop before it changes anything,
// and to say what is wrong and what to do. Clocks, kernels, processors and memory are the machine's: those are tested in pkg/preflight.
func TestPreflight(t *testing.T) {
	e := start(t, "preflight", 2)
	h := e.Hosts[0]
	const plain = "  roleGroups: {master: [$1]}\n"
	for _, tc := range []struct {
		name string
		// spoil and restore are lines of shell for the host.
		spoil, restore string
		spec           string
		want           []string
	}{
		{
			name: "privilege", want: []string{"sudo is refused for user nosudo", "sudo: a password is required", "NOPASSWD"},
		},
		{
			name: "os", spoil: `sed -i --follow-symlinks 's/^VERSION_ID=.*/VERSION_ID="10"/' /etc/os-release`, restore: `sed -i --follow-symlinks 's/^VERSION_ID=.*/VERSION_ID="12"/' /etc/os-release`,
			want: []string{`os: debian "10" is not a supported release`, "use Debian 12 or 13"},
		},
		{name: "architecture", want: []string{"the host is amd64, and declared as arm64"}},
		{
			name: "disk", spoil: "mount -t tmpfs -o size=64m none /var/lib", restore: "umount /var/lib",
			want: []string{"disk: 64 MiB are free in /var/lib, and 4.0 GiB are needed"},
		},
		{
			name: "kernel", spec: plain + "  system: {modules: [there-is-none]}\n",
			want: []string{"kernel: the kernel module there-is-none is not loaded and cannot be"},
		},
		{
			name: "hostname", spoil: "cp /etc/hosts /root/hosts && printf '127.0.0.1 localhost %s\\n' $(hostname) >/etc/hosts", restore: "cat /root/hosts >/etc/hosts && rm /root/hosts",
			want: []string{"hostname: the host's own name preflight-1 resolves to 127.0.0.1", "add Hostname to system.ignorePreflightErrors"},
		},
		{
			name: "firewall by policy", spoil: "nft 'table inet own { chain in { type filter hook input priority 0; policy drop; ct state established accept; tcp dport 22 accept; }; }'",
			restore: "nft delete table inet own",
			want:    []string{"firewall: rules of its own (inet own in) refuse what they do not name; the host needs 6443/tcp", "add Firewall to system.ignorePreflightErrors"},
		},
		{
			name: "firewall by its last rule", spoil: "iptables -A INPUT -p tcp --dport 22 -j ACCEPT && iptables -A INPUT -j REJECT",
			restore: "iptables -F INPUT",
			want:    []string{"firewall: rules of its own (ip filter INPUT) refuse"},
		},
		{
			name: "network", spoil: "ip address add 198.18.5.1/24 dev lo", restore: "ip address del 198.18.5.1/24 dev lo",
			spec: plain + "  network: {podCIDRs: [198.18.0.0/16]}\n",
			want: []string{"network: an interface of the host is in the network 198.18.5.0/24, which overlaps the network of pods 198.18.0.0/16", "choose another network in network.podCIDRs"},
		},
		{
			name: "installation", spoil: "mkdir -p /etc/kubernetes/manifests /var/lib/etcd/member", restore: "rm -r /etc/kubernetes /var/lib/etcd",
			want: []string{"a Kubernetes that is not ours is on the host: /etc/kubernetes is not empty; /var/lib/etcd is not empty", "kubeadm reset"},
		},
		{
			name: "runtime", spoil: "touch /usr/local/bin/containerd", restore: "rm /usr/local/bin/containerd",
			want: []string{"runtime: a containerd that is not ours is on the host: /usr/local/bin/containerd is there"},
		},
		{
			name: "ports", spoil: "systemd-run --quiet --unit taken systemd-socket-activate --listen 6443 /bin/cat && until ss -Hltn | grep -q :6443; do :; done",
			restore: "systemctl stop taken", want: []string{"ports: port 6443 is taken by systemd-socket- (process"},
		},
		{
			name: "resolv", spoil: "cp /etc/resolv.conf /root/resolv && : >/etc/resolv.conf", restore: "cat /root/resolv >/etc/resolv.conf && rm /root/resolv",
			want: []string{"resolv: /etc/resolv.conf names no name server", "add Resolv to system.ignorePreflightErrors"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := *e
			e.t = t
			if tc.spoil != "" {
				e.sh(h, tc.spoil)
				defer e.sh(h, tc.restore)
			}
			if tc.spec == "" {
				tc.spec = plain
			}
			e.declareAs(h, tc.name, tc.spec)
			e.ends(exitUnfit, append([]string{"plan"}, e.declared()...), tc.want...)
		})
	}
	t.Run("identity", func(t *testing.T) {
		e := *e
		e.t = t
		other := e.Hosts[1]
		own := e.sh(other, "cat /etc/machine-id")
		e.sh(other, "echo "+e.sh(h, "cat /etc/machine-id")+" >/etc/machine-id")
		defer e.sh(other, "echo "+own+" >/etc/machine-id")
		e.write("  roleGroups: {master: [$1], worker: [$2]}\n")
		e.ends(exitUnfit, append([]string{"plan"}, e.declared()...), "preflight-2: identity: it has the same /etc/machine-id as preflight-1")
	})
	e.unchanged(e.Hosts...)
	e.write(plain)
	out := e.ends(0, append([]string{"plan"}, e.declared()...))
	if strings.Contains(out, "Error") {
		t.Errorf("a host that is as it was is not fit:\n%s", out)
	}
	e.unchanged(e.Hosts...)
}

// declareAs declares the cluster with what only a host's own entry can have wrong.
func (e *environment) declareAs(h *hosts.Host, what, spec string) {
	e.t.Helper()
	user := h.User
	defer func() { h.User = user }()
	switch what {
	case "privilege":
		h.User = hosts.NoSudo
	case "architecture":
		defer e.replace("user: "+user, "arch: arm64, user: "+user)
	}
	e.write(spec)
}

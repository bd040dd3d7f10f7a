// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// selinux: seed 002, Step_CheckSELinuxStatus.
func selinux(r *report) {
	if r.f.System.SELinux == "Enforcing" {
		r.avoid(spec.CheckSELinux, "SELinux is enforcing, and kubexm labels neither its programs nor its data",
			"set it to permissive (setenforce 0, and SELINUX=permissive in /etc/selinux/config)")
	}
}

// ownRules is a command that names the chains which refuse packets to the host that no rule of theirs lets in: by their policy, or by
// their last rule. Chains of firewall managers are among them.
const ownRules = `PATH=$PATH:/usr/sbin:/sbin
refuses='^[[:space:]]*(counter packets [0-9]+ bytes [0-9]+ )?(drop|reject( with .*)?)$'
if command -v nft >/dev/null; then
	nft list chains | awk '$1 == "table" { table = $2 " " $3 } $1 == "chain" { chain = $2 }
		$1 == "type" && $2 == "filter" && $4 == "input" { print table, chain, $0 ~ /policy drop/ ? "drop" : "accept" }' |
	while read -r family table chain policy; do
		[ "$policy" = drop ] || nft list chain "$family" "$table" "$chain" | grep -v '}$' | tail -n 1 | grep -qE "$refuses" || continue
		printf '%s\n' "$family $table $chain"
	done
elif command -v iptables >/dev/null; then
	iptables -S INPUT | grep -qE '^-P INPUT DROP|^-A INPUT -j (DROP|REJECT)' && echo "ip filter INPUT"
fi
exit 0`

const refusingChains = "preflight/refusing-chains"

func firewallQuery(spec.Target) host.Query {
	return host.Query{Commands: []host.CommandQuery{{ID: refusingChains, Argv: []string{"/bin/sh", "-c", ownRules}}}}
}

// ofManager reports whether a chain that ownRules names is one that the firewall manager makes.
func ofManager(manager, chain string) bool {
	switch manager {
	case spec.Firewalld:
		return strings.HasPrefix(chain, "inet firewalld ")
	case spec.UFW:
		return chain == "ip filter INPUT" || chain == "ip6 filter INPUT"
	}
	return false
}

// firewall: seed 002, Step_CheckFirewallStatus.
func firewall(r *report) {
	active, policy := r.f.System.Firewall, r.t.System().Firewall
	var opened []string
	for _, p := range r.t.OpenPorts() {
		opened = append(opened, p.String())
	}
	list := strings.Join(opened, ", ")
	var chains []string
	for line := range strings.Lines(string(r.f.Commands[refusingChains].Stdout)) {
		if chain := strings.TrimSpace(line); chain != "" && !ofManager(active, chain) {
			chains = append(chains, host.Word(chain, 120))
		}
	}
	if len(chains) > 0 {
		cause := fmt.Sprintf("rules of its own (%s) refuse what they do not name; the host needs %s open", strings.Join(chains, "; "), list)
		const remedy = "let these in there, and forward what is from and to pods: kubexm changes no rules but those of firewalld and ufw"
		if policy == spec.FirewallKeep {
			r.warn(cause, remedy)
		} else {
			r.avoid(spec.CheckFirewall, cause, remedy)
		}
	}
	switch {
	case active == "":
	case policy == spec.FirewallOpen && r.ours():
	case policy == spec.FirewallOpen:
		r.warn(fmt.Sprintf("%s is active (%s will be opened in it by the name kubexm, closed on reset)", active, list),
			"set system.firewall: Keep to open them yourself")
	case policy == spec.FirewallKeep:
		r.warn(fmt.Sprintf("%s is active and stays so; the host needs %s open", active, list), openPorts(active, r.t))
	default:
		r.warn(active+" is active (will be turned off, restored on reset)", "set system.firewall: Open to leave it on")
	}
}

// openPorts is how to open them by this firewall manager, and to let through what comes from pods.
func openPorts(manager string, t spec.Target) string {
	var commands []string
	if manager == spec.UFW {
		for _, p := range t.OpenPorts() {
			switch {
			case p.Number > 0:
				commands = append(commands, "ufw allow "+strings.Replace(p.String(), "-", ":", 1))
			default:
				for _, peer := range t.Peers(p) {
					commands = append(commands, fmt.Sprintf("ufw allow from %s proto %s", peer, p))
				}
			}
		}
		if t.Host.Role.IsNode() {
			for _, cidr := range t.Cluster.Network.PodCIDRs {
				commands = append(commands, "ufw allow from "+cidr, "ufw route allow from "+cidr, "ufw route allow to "+cidr)
			}
		}
	} else {
		add := "firewall-cmd --permanent"
		for _, p := range t.OpenPorts() {
			if p.Number > 0 {
				add += " --add-port=" + p.String()
			} else {
				add += " --add-protocol=" + p.String()
			}
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
	return "unless they are open: " + strings.Join(commands, " && ") + "; or set system.firewall: Open"
}

// swap: seed 002, Step_CheckSwapStatus.
func swap(r *report) {
	if len(r.f.System.Swap) == 0 {
		return
	}
	devices := strings.Join(r.f.System.Swap, ", ")
	switch {
	case r.t.System().Swap == spec.PolicyKeep:
		r.warn(fmt.Sprintf("swap is on (%s) and stays so; the kubelet is set to run beside it", devices), "set system.swap: Off to turn it off")
	case r.f.System.Container != "":
		r.warn(fmt.Sprintf("swap is on (%s) and belongs to the machine that the container runs on", devices), "turn it off there, or set system.swap: Keep")
	default:
		r.warn(fmt.Sprintf("swap is on (%s) (will be turned off, restored on reset)", devices), "set system.swap: Keep to leave it on")
	}
}

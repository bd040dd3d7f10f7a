// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeproxy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/none"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// programs of a host on which kube-proxy has run in each of its modes, and somebody else has rules, tables and sets of their own.
var programs = map[string]string{
	"ip": `case $* in -o*|netns*) ;; *) echo "ip $*" >>"${0%/*}/log" ;; esac`,
	"iptables-nft-save": `cat <<'END'
*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:DOCKER - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -j DOCKER
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ
COMMIT
END`,
	"iptables-nft-restore": `{ echo restore; cat; } >>"${0%/*}/log"`,
	"nft":                  `echo "nft $*" >>"${0%/*}/log"`,
	"ipset": `case $* in
"list -name") printf 'KUBE-CLUSTER-IP\nothers\nKUBE-LOOP-BACK\n' ;;
*) echo "ipset $*" >>"${0%/*}/log" ;;
esac`,
}

// removed is what a reset does on such a host, beside what it does on any.
func removed(t *testing.T, left step.Residue) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	argv := component.PodCleanups(left)[0].Argv
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("it says %q: %v", out, err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

// TestResidue: what kube-proxy leaves in the kernel goes, sets after the rules that use them, and what is others' stays. Where there is no
// kube-proxy of ours, only the kubelet's chains go, which have the same prefix.
func TestResidue(t *testing.T) {
	const rules = `restore
*nat
:PREROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -j DOCKER
COMMIT
`
	const links = "ip link delete kube-bridge\nip link delete nodelocaldns\n"
	for name, tc := range map[string]struct {
		proxy component.ServiceProxy
		want  string
	}{
		"pods": {kubeproxy.Pods{}, "ip link delete cni0\nip link delete kube-ipvs0\n" + links + rules +
			"nft delete table ip kube-proxy\nnft delete table ip6 kube-proxy\nipset destroy KUBE-CLUSTER-IP\nipset destroy KUBE-LOOP-BACK\n"},
		"none": {none.ServiceProxy{}, "ip link delete cni0\n" + links + rules},
	} {
		t.Run(name, func(t *testing.T) {
			if got := removed(t, tc.proxy.Residue()); got != tc.want {
				t.Errorf("it does\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
	if pods, unit := removed(t, kubeproxy.Pods{}.Residue()), removed(t, kubeproxy.Unit{}.Residue()); pods != unit {
		t.Errorf("a unit leaves another residue than Pods:\n%s", unit)
	}
}

// TestResidueOfSlots: what the network and the proxy leave is removed as one, and the slots' own values stay as they are.
func TestResidueOfSlots(t *testing.T) {
	network := step.Residue{Links: append(make([]string, 0, 8), "net0"), Chains: []string{"NET-"}, Tables: []string{"ip net"}, Script: "echo x\n"}
	both := network.And(kubeproxy.Pods{}.Residue())
	got := fmt.Sprintf("%q %q %q %q %q", both.Links, both.Chains, both.Tables, both.Sets, both.Script)
	want := `["net0" "kube-ipvs0"] ["NET-" "KUBE-"] ["ip net" "ip kube-proxy" "ip6 kube-proxy"] ["KUBE-"] "echo x\n"`
	if got != want {
		t.Errorf("together they leave %s, want %s", got, want)
	}
	if len(network.Links) != 1 || network.Links[:2][1] != "" {
		t.Errorf("it has written to the network's own list: %q", network.Links[:2])
	}
}

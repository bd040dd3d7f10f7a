// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package calico

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestRemoval: what Calico left in the kernel goes, sets after the rules that use them, and what is others' stays; twice over.
func TestRemoval(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	put := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("ip", `#!/bin/sh
case $* in
"-o link show type veth")
	echo "3: cali1e371af4d47@if2: <UP> mtu 1400 qdisc noqueue state UP"
	echo "4: calibrate@if2: <UP> mtu 1500 qdisc noqueue state UP"
	echo "28: eth0@if29: <UP> mtu 1500 qdisc noqueue state UP" ;;
*) echo "ip $*" >>"${0%/*}/log" ;;
esac
`)
	put("iptables-nft-save", `#!/bin/sh
cat <<'END'
*filter
:INPUT ACCEPT [0:0]
:cali-INPUT - [0:0]
-A INPUT -m comment --comment "cali:Cz_u1IQiXIMmKD4c" -j cali-INPUT
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment "local ssh" -j ACCEPT
-A FORWARD -m comment --comment "cali:S93hcgKJrXEqnTfs" -m comment --comment "Policy explicitly accepted packet." -j ACCEPT
-A cali-INPUT -m comment --comment "cali:FewJpBykm9iJ-YNH" -j ACCEPT
COMMIT
END
`)
	put("iptables-nft-restore", "#!/bin/sh\n{ echo restore; cat; } >>\"${0%/*}/log\"\n")
	// Rules without any of Calico's are not written again.
	put("ip6tables-nft-save", "#!/bin/sh\nprintf '*filter\\n:INPUT ACCEPT [0:0]\\n-A INPUT -s calico.example -j ACCEPT\\nCOMMIT\\n'\n")
	put("ip6tables-nft-restore", "#!/bin/sh\necho 'ip6tables was written' >>\"${0%/*}/log\"\n")
	put("ipset", `#!/bin/sh
case $* in
"list -name") printf 'cali40masq-ipam-pools\nKUBE-LOOP-BACK\ncalibrated\ncali60all-ipam-pools\n' ;;
*) echo "ipset $*" >>"${0%/*}/log" ;;
esac
`)
	const want = `ip link delete cali1e371af4d47
ip -4 route flush proto 80
ip -6 route flush proto 80
restore
*filter
:INPUT ACCEPT [0:0]
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment "local ssh" -j ACCEPT
COMMIT
ipset destroy cali40masq-ipam-pools
ipset destroy cali60all-ipam-pools
`
	for range 2 {
		put("log", "")
		cmd := exec.Command("/bin/sh", "-c", remove)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("it says %q: %v", out, err)
		}
		got, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("it does\n%s\nwant\n%s", got, want)
		}
	}
}

func TestPodMTU(t *testing.T) {
	var n spec.Network
	if got := (Network{}).PodMTU(n); got != 1450 {
		t.Errorf("without a setting %d", got)
	}
	n.Calico.VethMTU = 1400
	if got := (Network{}).PodMTU(n); got != 1400 {
		t.Errorf("of 1400 %d", got)
	}
}

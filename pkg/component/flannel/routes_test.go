// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package flannel

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRoutesAreRemoved: routes by other hosts into the pods' networks go, whose links stay; and where flannel has written nothing, none.
func TestRoutesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	log, written := filepath.Join(dir, "log"), filepath.Join(dir, "subnet.env")
	put := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("ip", `#!/bin/sh
case $* in
"-4 route show root 10.233.64.0/18")
	echo "10.233.64.0/24 dev cni0 proto kernel scope link src 10.233.64.1"
	echo "10.233.65.0/24 via 10.0.0.2 dev eth0"
	echo "10.233.66.0/24 via 10.0.0.3 dev eth0" ;;
"-6 route show root fd85::/48") echo "fd85:0:0:1::/64 via fd77::2 dev eth0 metric 1024 pref medium" ;;
*"route "*) echo "$*" >>"${0%/*}/log" ;;
esac
`)
	removed := func() string {
		t.Helper()
		put("log", "")
		cmd := exec.Command("/bin/sh", "-c", strings.ReplaceAll(removeRoutes, "/run/flannel/subnet.env", written))
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("it says %q: %v", out, err)
		}
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if got := removed(); got != "" {
		t.Errorf("nothing is known of pods' networks, and it does\n%s", got)
	}
	put("subnet.env", "FLANNEL_NETWORK=10.233.64.0/18\nFLANNEL_SUBNET=10.233.64.1/24\nFLANNEL_IPV6_NETWORK=fd85::/48\nFLANNEL_IPV6_SUBNET=fd85::1/64\nFLANNEL_MTU=1500\n")
	const want = "-4 route delete 10.233.65.0/24 via 10.0.0.2 dev eth0\n-4 route delete 10.233.66.0/24 via 10.0.0.3 dev eth0\n" +
		"-6 route delete fd85:0:0:1::/64 via fd77::2 dev eth0 metric 1024 pref medium\n"
	if got := removed(); got != want {
		t.Errorf("it does\n%s\nwant\n%s", got, want)
	}
}

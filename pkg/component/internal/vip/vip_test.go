// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package vip_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/vip"
)

// TestAddressIsTakenOffWhereverItIs: of two interfaces that have it, a VLAN's among them, neither does after that; where none has it,
// nothing is done; and what ip refuses stops nobody.
func TestAddressIsTakenOffWhereverItIs(t *testing.T) {
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
"-oneline address show to 10.0.0.7/32")
	echo "2: eth0    inet 10.0.0.7/32 scope global eth0\       valid_lft forever preferred_lft forever"
	echo "5: vlan7@eth1    inet 10.0.0.7/32 scope global vlan7\       valid_lft forever preferred_lft forever" ;;
"address del "*)
	echo "$*" >>"${0%/*}/log"
	echo "RTNETLINK answers: Cannot assign requested address" >&2
	exit 2 ;;
esac
`)
	for address, want := range map[string]string{
		"10.0.0.7": "address del 10.0.0.7/32 dev eth0\naddress del 10.0.0.7/32 dev vlan7\n",
		"10.0.0.8": "",
	} {
		put("log", "")
		argv := vip.Release(address).Argv
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("it says %q: %v", out, err)
		}
		got, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("of %s it does\n%s\nwant\n%s", address, got, want)
		}
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package door_test

import (
	"fmt"
	"os"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// ignite has Ignition put onto the host what its config says, as the stages of an initramfs do, and systemd enable what it has never seen,
// as it does at a first boot.
const ignite = `printf %s "$1" >/run/config.ign
cd /run
export IGNITION_CONFIG_FILE=/run/config.ign
for stage in fetch files; do
	ignition -platform file -stage "$stage" -config-cache /run/ignition.json -log-to-stdout >/run/ignition.log || { cat /run/ignition.log; exit 1; }
done
systemctl daemon-reload
systemctl preset kubexm-bootstrap.service
[ "$(stat -c "%a %U" /etc/kubexm/bootstrap.sh)" = "700 root" ]
`

// TestDoorByIgnition opens a host that Ignition has set up: when it boots, once, however often it is started, and not after it was closed.
func TestDoorByIgnition(t *testing.T) {
	t.Parallel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("doorignition-%d", os.Getpid()), Count: 1, System: hosts.Ignition})
	h := pool.Hosts[0]
	own := string(cryptossh.MarshalAuthorizedKey(h.HostKey))
	v := visit(t, h, "sha256:09")
	data, err := door.Ignition(scriptOf(t, v.options))
	if err != nil {
		t.Fatal(err)
	}
	const traces = `ls -d /etc/kubexm /etc/systemd/system/kubexm* /etc/systemd/system/*.wants/kubexm* 2>/dev/null || :`
	reboot := func() {
		t.Helper()
		if err := h.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := v.sh(state + "state || :")

	v.sh(ignite, string(data))
	reboot()
	v.until("[ -e /run/cluster-api/bootstrap-success.complete ] && systemctl -q is-active kubexm-bootstrap")
	v.in(v.birth)
	v.in(own)
	v.sh("[ ! -e /etc/kubexm/bootstrap.sh ]")
	reboot()
	v.in(v.birth)
	if out := v.sh("systemctl show -P ConditionResult kubexm-bootstrap"); out != "no" {
		t.Errorf("a host that is started again is opened again: %s", out)
	}
	v.as(v.birth, door.Close)
	v.until("! id kubexm 2>/dev/null && [ ! -e /etc/kubexm ]")
	reboot()
	v.refused(own, host.KindAuth)
	if after, left := v.sh(state+"state || :"), v.sh(traces); after != before || left != "" {
		t.Errorf("it leaves %q and\n%s\nwant\n%s", left, after, before)
	}

	// What fails is tried again, and what was not run yet does not open the door that others have opened, and we closed.
	v.sh(ignite, string(data))
	v.sh("cp -p /etc/ssh/sshd_config /run/sane; sed -i '1iNonsense yes' /etc/ssh/sshd_config; systemctl start --no-block kubexm-bootstrap")
	v.until("[ $(systemctl show -P NRestarts kubexm-bootstrap) -gt 0 ]")
	v.sh("cat /run/sane >/etc/ssh/sshd_config")
	v.until("[ -e /run/cluster-api/bootstrap-success.complete ] && [ ! -e /etc/kubexm/bootstrap.sh ]")
	v.sh(`printf %s "$1" >/etc/kubexm/bootstrap.sh`, scriptOf(t, v.options)) // as if it was cut before it was removed
	v.as(v.birth, door.Close)
	v.until("! id kubexm 2>/dev/null && [ ! -e /etc/kubexm ]")
	if after, left := v.sh(state+"state || :"), v.sh(traces); after != before || left != "" {
		t.Errorf("closed before it was done, it leaves %q and\n%s\nwant\n%s", left, after, before)
	}
}

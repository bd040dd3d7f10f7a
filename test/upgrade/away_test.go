// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package upgrade

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// away is how long nobody reaches the API server.
const away = 5 * time.Minute

// TestAPIServerAway takes the API server away while a worker is upgraded: in that time no other host is touched, and afterwards the
// same command ends with the Nodes that there were.
func TestAPIServerAway(t *testing.T) {
	c := &command{t: t}
	c.start("upgradeaway")
	old, updated := c.make("kubexm")
	nodes := c.nodes(old)
	controlPlane, workers := c.Hosts[0], c.Hosts[1:]

	log := filepath.Join(c.Dir, "upgrade.log")
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), c.upgradeArgs("--to", updated, "--log-file", log)...)
		ended <- err
	}()
	on := changed(t, log, "upgrade/begin", workers, ended)
	others := slices.DeleteFunc(slices.Clone(c.Hosts), func(h *hosts.Host) bool { return h.Name == on })
	before := marks(t, others)
	// Who is on the host itself still reaches it, as with a cable that is cut.
	rule := []string{"INPUT", "--protocol", "tcp", "--dport", "6443", "!", "--in-interface", "lo", "--jump", "DROP"}
	if _, err := controlPlane.Exec(t.Context(), append([]string{"iptables", "--insert"}, rule...)...); err != nil {
		t.Fatal(err)
	}
	gone := time.Now()
	t.Logf("the API server is away while %s is upgraded", on)

	select {
	case err := <-ended:
		t.Fatalf("it ended while the API server was away: %v", err)
	case <-time.After(away):
	}
	for name, mark := range marks(t, others) {
		if mark != before[name] {
			t.Errorf("%s was touched while the API server was away:\n%s\n%s", name, before[name], mark)
		}
	}
	for _, l := range logged(t, log) {
		if l.Event == event.Changed && l.Node != on && l.Time.After(gone) {
			t.Errorf("step %s changed %s while the API server was away", l.Step, l.Node)
		}
	}
	if _, err := controlPlane.Exec(t.Context(), append([]string{"iptables", "--delete"}, rule...)...); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	t.Logf("the upgrade ended %s after the API server was there again", time.Since(back).Round(time.Second))
	for name, id := range c.nodes(updated) {
		if nodes[name] != id {
			t.Errorf("Node %s is another one than before", name)
		}
	}
}

// marks tell, by host, when anything that we put there was last changed or started.
func marks(t *testing.T, of []*hosts.Host) map[string]string {
	t.Helper()
	const script = `set -e
		systemctl show containerd kubelet --property=Id,ActiveEnterTimestamp,NRestarts
		find /etc/containerd /etc/kubernetes /etc/systemd/system /opt/cni /usr/local/bin /var/lib/kubelet/config.yaml -type f -printf '%p %T@\n' | sort`
	all := map[string]string{}
	for _, h := range of {
		out, err := h.Exec(t.Context(), "sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = out
	}
	return all
}

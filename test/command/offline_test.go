// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestOffline makes clusters of hosts that reach each other, and are reached by SSH, and nothing else: neither a mirror of their
// distribution nor a registry. One of the hosts is a load balancer, whose packages no host has from the start.
func TestOffline(t *testing.T) {
	for name, kubernetes := range map[string]string{
		"binary":  "type: kubexm",
		"kubeadm": "type: kubeadm",
	} {
		t.Run(name, func(t *testing.T) {
			pool := hosts.Options{Name: "offline-" + name, Count: 3, Offline: true}
			e := startHosts(t, pool, lab.Bundle(t, "KUBEXM_BUNDLE_OFFLINE", "bundle-offline"))
			master, worker, balancer := e.Hosts[0], e.Hosts[1], e.Hosts[2]
			e.reachNothing()
			e.write("  roleGroups: {master: [$1], worker: [$2], loadbalancer: [$3]}\n" +
				"  controlPlaneEndpoint: {externalLoadBalancer: kubexm-kh, lb_address: $VIP}\n" +
				"  kubernetes: {" + kubernetes + ", version: " + e.bundle.Manifest().KubernetesVersion + "}\n")

			e.ends(0, e.CreateArgs())
			e.reachNothing()
			e.ends(0, []string{"get", "nodes"}, master.Name, worker.Name, "Ready")
			state := strings.Fields(e.sh(balancer, "systemctl is-active keepalived haproxy\n"+
				"dpkg-query -W -f '${db:Status-Status} ' keepalived haproxy"))
			if want := []string{"active", "active", "installed", "installed"}; !slices.Equal(state, want) {
				t.Errorf("the load balancer's services and packages are %q, want %q", state, want)
			}
			e.ends(0, e.CreateArgs(), "0 changes")

			e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
			e.reachNothing()
			e.unchanged(e.Hosts...)
		})
	}
}

// reachNothing wants hosts to reach each other, and neither a mirror, by its name or by an address, nor a registry.
func (e *environment) reachNothing() {
	e.t.Helper()
	for i, h := range e.Hosts {
		other := e.Hosts[(i+1)%len(e.Hosts)]
		e.sh(h, "timeout 5 sh -c 'ssh-keyscan -T 4 "+other.Address+" 2>/dev/null | grep -q .'")
		for _, url := range []string{"https://registry.k8s.io/v2/", "http://1.1.1.1/", "https://1.1.1.1/"} {
			if out, err := h.Exec(e.t.Context(), "curl", "--silent", "--show-error", "--insecure", "--max-time", "2", url); err == nil {
				e.t.Fatalf("%s reaches %s:\n%s", h.Name, url, strings.TrimSpace(out))
			}
		}
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Where flannel cannot start, the Node is Ready all the same: no run succeeds with it, and who reads its error learns which Pod
// is in the way and why. The next run goes on once flannel can.
func TestNetworkDown(t *testing.T) {
	limited := spec.Cluster{Limits: []spec.Limit{{Step: "gate/network", TimeoutSeconds: 45, Attempts: 1}}}
	c := all.of(limited, spec.RoleControlPlane)
	tr := newTrialOf(t, c)
	h := tr.hosts[0]
	// A host has one interface for a port and a network's number, which flannel would have, too.
	const other = "faults0"
	tr.exec(h, "ip", "link", "add", other, "type", "vxlan", "id", "1", "dev", "eth0", "dstport", "8472")
	remove := func() { tr.exec(h, "sh", "-c", `[ ! -e "/sys/class/net/$0" ] || ip link delete "$0"`, other) }
	t.Cleanup(remove)

	_, err := engine.New(c.options(nil)).Run(t.Context(), tr.plan(1))
	f := onlyFailure(t, err)
	t.Log(err)
	for _, want := range []string{"DaemonSet kube-flannel/kube-flannel-ds on Node " + h.Name, "its Pod kube-flannel-ds-"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if want := "controller/kubernetes/ready-" + h.Name + "/gate/network-" + h.Name; f.Node != want {
		t.Errorf("it failed at %s, not at %s", f.Node, want)
	}
	api, err := c.api()
	if err != nil {
		t.Fatal(err)
	}
	if err := api.NodeReady(t.Context(), h.Name); err != nil {
		t.Errorf("the Node is not Ready, so the test proves nothing: %v", err)
	}

	remove()
	patient := all.of(spec.Cluster{}, spec.RoleControlPlane)
	tr.cluster = patient
	p := tr.plan(1)
	if _, err := engine.New(patient.options(nil)).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	tr.demandConverged(p)
	tr.reset(nil)
}

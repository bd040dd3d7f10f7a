// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/byoh"
)

// TestBYOH takes a cluster on hosts of Bring Your Own Host through its life. The provider is played, or is the release in the directory
// that the variable BYOH names.
func TestBYOH(t *testing.T) {
	e := startWith(t, "by", "control-plane", "worker", "worker")
	ctx := t.Context()
	defer func() {
		if t.Failed() {
			t.Log(e.explain(context.WithoutCancel(ctx)))
		}
	}()
	e.startManagers()
	phase := e.phases()
	const id = "byoh://"

	phase("the provider is installed, and its agents register the hosts")
	player := e.playBYOH()
	e.apply(e.template("cluster-byoh.yaml", map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": clusterName, "KUBERNETES_VERSION": e.bundle.Version("kubernetes"),
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1", "CONTROL_PLANE_ENDPOINT_HOST": e.pool.Hosts[0].Address,
	})...)
	e.expectPaired(1, id)
	phase("proven")
	proven(e)

	phase("agents that start again find the addresses of the cluster's own networks too, and nothing follows from that")
	for _, h := range e.pool.Hosts {
		e.Expect(player.Register(ctx, h)).To(Succeed())
	}
	e.operate("check", bootstrapv1.CheckDriftType, bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: clusterName})
	for _, h := range e.operated("check", 2) {
		e.Expect(h.Message).To(Equal("up to date"), h.Name)
	}

	phase("scaled to two workers, and to one")
	e.scale(2)
	e.expectPaired(2, id)
	e.scale(1)
	e.expectPaired(1, id)
	e.expectResetBeside(player, e.expectUnattached(player, 1)...)

	phase("its host is given to another Machine")
	e.scale(2)
	e.expectPaired(2, id)
	e.expectUnattached(player, 0)

	phase("deleted")
	e.requestDeletion(clusterName)
	e.expectDeleted(clusterName, converging)
	e.expectUnattached(player, len(e.pool.Hosts))
	e.expectResetBeside(player, e.names()...)
	e.expectNothingLeft()
	e.stopManagers()
}

// playBYOH has an agent on each host, which registers it with its role.
func (e *environment) playBYOH() *byoh.Player {
	e.t.Helper()
	o := byoh.Options{
		Config: e.plane.RESTConfig(), Namespace: namespace, Hosts: e.pool.Hosts, Labels: map[string]map[string]string{}, Log: e.t.Logf,
	}
	if dir := os.Getenv("BYOH"); dir != "" {
		var err error
		o.Release, err = byoh.OpenRelease(dir)
		e.Expect(err).NotTo(HaveOccurred())
		o.Dir, o.Kubeconfig = filepath.Join(e.dir, "byoh"), management.Kubeconfig(filepath.Join(e.dir, "plane"))
		e.Expect(os.Mkdir(o.Dir, 0o700)).To(Succeed())
	}
	for i, h := range e.pool.Hosts {
		o.Labels[h.Name] = map[string]string{"role": e.roles[i]}
	}
	player, err := byoh.Start(e.t.Context(), o)
	e.Expect(err).NotTo(HaveOccurred())
	e.t.Cleanup(func() {
		if err := player.Stop(); err != nil {
			e.t.Error(err)
		}
	})
	return player
}

// expectResetBeside is expectReset, of hosts with agents that are there all the time.
func (e *environment) expectResetBeside(player *byoh.Player, names ...string) {
	e.t.Helper()
	for _, h := range e.pool.Named(names...) {
		e.Expect(player.Withdraw(e.t.Context(), h)).To(Succeed())
	}
	e.expectReset(names...)
	for _, h := range e.pool.Named(names...) {
		e.Expect(player.Register(e.t.Context(), h)).To(Succeed())
	}
}

// expectUnattached waits until so many ByoHosts can be attached, and returns their names.
func (e *environment) expectUnattached(player *byoh.Player, count int) []string {
	e.t.Helper()
	var names []string
	e.Eventually(func(g Gomega) {
		hosts := &byoh.HostList{}
		g.Expect(player.Client.List(e.t.Context(), hosts)).To(Succeed())
		names = nil
		for i := range hosts.Items {
			if hosts.Items[i].Labels[clusterv1.ClusterNameLabel] == "" {
				names = append(names, hosts.Items[i].Name)
			}
		}
		g.Expect(names).To(HaveLen(count))
	}).Should(Succeed())
	return names
}

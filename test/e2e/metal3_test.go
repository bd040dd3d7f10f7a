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

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/metal3"
)

// TestMetal3 takes a cluster on hosts of Metal3 through its life. The provider is played, or is the release in the directory that the
// variable METAL3 names; its operator is played in any case.
func TestMetal3(t *testing.T) {
	e := startOn(t, hosts.CloudInit, "m3", "control-plane", "worker", "worker")
	ctx := t.Context()
	defer func() {
		if t.Failed() {
			t.Log(e.explain(context.WithoutCancel(ctx)))
		}
	}()
	e.startManagers()
	phase := e.phases()
	const id = "metal3://" + namespace + "/"

	phase("the provider is installed, and all hosts are inspected")
	player := e.playMetal3()
	e.apply(e.template("cluster-metal3.yaml", map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": clusterName, "KUBERNETES_VERSION": e.bundle.Version("kubernetes"),
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1", "CONTROL_PLANE_ENDPOINT_HOST": e.pool.Hosts[0].Address,
		"IMAGE_URL": "http://images.example/debian-12.qcow2", "IMAGE_FORMAT": "qcow2",
		"IMAGE_CHECKSUM": "http://images.example/debian-12.qcow2.sha256sum",
	})...)
	e.expectPaired(1, id)
	phase("proven")
	// cloud-init has given the hosts other keys than they had.
	_, err := hosts.Open(ctx, e.pool.Name, e.pool.Dir)
	e.Expect(err).NotTo(HaveOccurred())
	proven(e)

	phase("scaled to two workers, which are all that there are, and to one")
	e.scale(2)
	e.expectPaired(2, id)
	e.expectAvailable(player, 0)
	e.scale(1)
	e.expectPaired(1, id)
	e.expectWiped(e.expectAvailable(player, 1))

	phase("its host is given to another Machine")
	e.scale(2)
	e.expectPaired(2, id)

	phase("deleted")
	e.requestDeletion(clusterName)
	e.expectDeleted(clusterName, converging)
	e.expectWiped(e.expectAvailable(player, len(e.pool.Hosts)))
	e.expectNothingLeft()
	e.stopManagers()
}

// playMetal3 has a BareMetalHost for each host, labelled with its role.
func (e *environment) playMetal3() *metal3.Player {
	e.t.Helper()
	o := metal3.Options{
		Config: e.plane.RESTConfig(), Namespace: namespace, Pool: e.pool.Pool, Labels: map[string]map[string]string{}, Log: e.t.Logf,
	}
	if dir := os.Getenv("METAL3"); dir != "" {
		var err error
		o.Release, err = metal3.OpenRelease(dir)
		e.Expect(err).NotTo(HaveOccurred())
		o.Dir, o.Kubeconfig = filepath.Join(e.dir, "metal3"), management.Kubeconfig(filepath.Join(e.dir, "plane"))
		e.Expect(os.Mkdir(o.Dir, 0o700)).To(Succeed())
	}
	for i, h := range e.pool.Hosts {
		o.Labels[h.Name] = map[string]string{"role": e.roles[i]}
	}
	player, err := metal3.Start(e.t.Context(), o)
	e.Expect(err).NotTo(HaveOccurred())
	e.t.Cleanup(func() {
		if err := player.Stop(); err != nil {
			e.t.Error(err)
		}
	})
	return player
}

// expectAvailable waits until so many BareMetalHosts can be taken, and returns their names.
func (e *environment) expectAvailable(player *metal3.Player, count int) []string {
	e.t.Helper()
	var names []string
	e.Eventually(func(g Gomega) {
		all := &metal3.HostList{}
		g.Expect(player.Client.List(e.t.Context(), all)).To(Succeed())
		names = nil
		for i := range all.Items {
			if h := &all.Items[i]; h.Spec.ConsumerRef == nil && h.Status.Provisioning.State == metal3.Available {
				names = append(names, h.Name)
			}
		}
		g.Expect(names).To(HaveLen(count))
	}, converging).Should(Succeed())
	return names
}

// expectWiped sees that hosts were made anew, and nothing was done with them since.
func (e *environment) expectWiped(names []string) {
	e.t.Helper()
	for _, h := range e.pool.Named(names...) {
		left, err := h.Exec(e.t.Context(), "sh", "-c", "ls -d /etc/kubernetes /etc/kubexm /var/lib/kubexm /var/lib/kubelet /var/lib/cloud/seed/config_drive "+
			"2>/dev/null; getent passwd kubexm || true")
		e.Expect(err).NotTo(HaveOccurred())
		e.Expect(left).To(BeEmpty(), h.Name)
	}
}

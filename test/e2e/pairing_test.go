// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// phases logs what a test is at, and since when.
func (e *environment) phases() func(what string) {
	began := time.Now()
	return func(what string) {
		e.t.Helper()
		e.t.Logf("%6.1f s: %s", time.Since(began).Seconds(), what)
	}
}

// expectPaired waits until the cluster is one control plane host and so many workers of another infrastructure provider, whose provider IDs
// begin with scheme. Each is known by a key of its own that was made on it.
func (e *environment) expectPaired(workers int, scheme string) {
	e.t.Helper()
	ctx := e.t.Context()
	e.Eventually(func(g Gomega) {
		machines, err := list(ctx, e, clusterName, &clusterv1.MachineList{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(machines)).To(HaveLen(1 + workers))
		ids, keys := map[string]string{}, map[string]bool{}
		for i := range machines.Items {
			m := &machines.Items[i]
			expectTrue(g, "Machine "+m.Name, m, clusterv1.MachineReadyCondition)
			config, err := get(ctx, e, m.Spec.Bootstrap.ConfigRef.Name, &bootstrapv1.KubexmConfig{})
			g.Expect(err).NotTo(HaveOccurred())
			expectTrue(g, "KubexmConfig "+config.Name, config, bootstrapv1.ReadyCondition)
			expectTrue(g, "KubexmConfig "+config.Name, config, bootstrapv1.HostReadyCondition)
			g.Expect(config.Status.Host.HostKey).To(HavePrefix("ecdsa-sha2-nistp521 "))
			g.Expect(config.Status.Operation(bootstrapv1.ConvergeOperation).Outcome).To(Equal(bootstrapv1.RunSucceeded))
			keys[config.Status.Host.HostKey] = true
			ids[m.Status.NodeRef.Name] = m.Spec.ProviderID
		}
		g.Expect(keys).To(HaveLen(1 + workers))
		e.readyCluster(ctx, g, workers)
		for _, node := range e.readyNodes(ctx, g, 1+workers) {
			g.Expect(node.Spec.ProviderID).To(HavePrefix(scheme))
			g.Expect(ids).To(HaveKeyWithValue(node.Name, node.Spec.ProviderID))
		}
	}, converging).Should(Succeed())
}

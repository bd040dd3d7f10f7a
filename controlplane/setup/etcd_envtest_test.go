// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// TestUnknownEtcdMember: a member that no host has is named, keeps the control plane from shrinking, is handed to the hosts as gone once
// that is declared, and then nothing waits any more.
func TestUnknownEtcdMember(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.declare(1, controlplanev1.RollingUpdateStrategy)
	f.Eventually(func(g Gomega) {
		f.turn()
		g.Expect(f.names()).To(HaveLen(3))
		for _, m := range f.machines() {
			said := conditions.Get(&m, snapshot.EtcdMemberHealthy)
			g.Expect(conditions.IsTrue(&m, snapshot.EtcdMemberHealthy)).To(BeTrue(), "%s: %v", m.Name, said)
		}
	}, patience, interval).Should(Succeed())

	f.strangers = map[string]string{"old": "10.9.9.9"}
	f.changeConfigs(func(c *bootstrapv1.KubexmConfig) { c.Status.Etcd = f.etcd(c) })
	f.patchControlPlane(func(cp *controlplanev1.KubexmControlPlane) { cp.Spec.Replicas = ptr.To[int32](1) })
	f.Eventually(func(g Gomega) {
		f.turn()
		now := conditions.Get(f.controlPlane(), controlplanev1.EtcdClusterHealthyCondition)
		g.Expect(now).NotTo(BeNil())
		g.Expect(now.Message).To(ContainSubstring(`etcd lists the member old (ID 10999, https://10.9.9.9:2380)`))
		g.Expect(now.Message).To(ContainSubstring(`add "10999" to spec.cluster.etcd.goneMembers`))
		g.Expect(conditions.GetMessage(f.controlPlane(), clusterv1.ScalingDownCondition)).To(ContainSubstring("the member old"))
	}, patience, interval).Should(Succeed())
	f.Consistently(func() int { f.turn(); return len(f.names()) }, blink, interval).Should(Equal(3))

	f.patchControlPlane(func(cp *controlplanev1.KubexmControlPlane) { cp.Spec.Cluster.Etcd.GoneMembers = []string{"old"} })
	f.Eventually(func() []string { return f.clusterConfig().Spec.Cluster.Etcd.GoneMembers }, patience, interval).Should(Equal([]string{"old"}))
	f.changeConfigs(func(c *bootstrapv1.KubexmConfig) { c.Status.Etcd = f.etcd(c) }) // it was removed
	f.Eventually(func(g Gomega) {
		f.turn()
		g.Expect(f.machines()).To(HaveLen(1))
		g.Expect(conditions.IsTrue(f.controlPlane(), controlplanev1.EtcdClusterHealthyCondition)).To(BeTrue())
	}, patience, interval).Should(Succeed())
}

// changeConfigs changes the statuses of all KubexmConfigs.
func (f *fleet) changeConfigs(by func(*bootstrapv1.KubexmConfig)) {
	f.t.Helper()
	for _, m := range f.machines() {
		c := f.config(&m)
		f.change(c, func() { by(c) })
	}
}

func (f *fleet) patchControlPlane(by func(*controlplanev1.KubexmControlPlane)) {
	f.t.Helper()
	cp := f.controlPlane()
	before := cp.DeepCopy()
	by(cp)
	f.Expect(api.Patch(f.t.Context(), cp, client.MergeFrom(before))).To(Succeed())
}

// TestEtcdIsAskedFirst: what etcd said an hour ago is not enough for a member to go.
func TestEtcdIsAskedFirst(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.declare(1, controlplanev1.RollingUpdateStrategy)
	f.Eventually(func(g Gomega) {
		f.turn()
		g.Expect(f.names()).To(HaveLen(3))
		for _, m := range f.machines() {
			g.Expect(conditions.IsTrue(&m, snapshot.EtcdMemberHealthy)).To(BeTrue())
		}
	}, patience, interval).Should(Succeed())
	f.deaf = true
	f.changeConfigs(func(c *bootstrapv1.KubexmConfig) {
		c.Status.Etcd.ObservedTime.Time = c.Status.Etcd.ObservedTime.Add(-time.Hour)
	})
	f.patchControlPlane(func(cp *controlplanev1.KubexmControlPlane) { cp.Spec.Replicas = ptr.To[int32](1) })
	f.Eventually(func(g Gomega) {
		f.turn()
		asked := 0
		for _, m := range f.machines() {
			if !f.config(&m).Asked(bootstrapv1.AskEtcdAnnotation).IsZero() {
				asked++
			}
		}
		g.Expect(asked).To(Equal(2), "of three, whose oldest goes")
		g.Expect(conditions.GetMessage(f.controlPlane(), clusterv1.ScalingDownCondition)).To(ContainSubstring("the others must be known to be healthy"))
	}, patience, interval).Should(Succeed())
	f.Consistently(func() int { f.turn(); return len(f.names()) }, blink, interval).Should(Equal(3))
	f.deaf = false
	f.Eventually(func() int { f.turn(); return len(f.machines()) }, patience, interval).Should(Equal(1))
}

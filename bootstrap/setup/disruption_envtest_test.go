// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// blink is longer than the reconciler needs to do something wrong.
const blink = 3 * time.Second

// TestDisruption: what disrupts a host in use waits for somebody who agrees, and for a maintenance window; nothing else does.
func TestDisruption(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2)
	defer f.explain()
	f.clock.SetTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	f.declare()
	patch := func(text string) {
		t.Helper()
		cp := &controlplanev1.KubexmControlPlane{}
		cp.Namespace, cp.Name = namespace, "prod"
		f.Expect(f.api.Patch(t.Context(), cp, client.RawPatch("application/merge-patch+json", []byte(text)))).To(Succeed())
	}
	patch(`{"spec":{"cluster":{"disruption":{"approval":"Required","maintenanceWindows":[{"start":"0 22 * * SAT","durationMinutes":60}]}}}}`)

	t.Log("a first installation waits for nothing")
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))

	t.Log("a change of a host in use waits, and the host stays ready")
	patch(`{"spec":{"node":{"nodeLabels":{"pool":"masters"}}}}`)
	waiting := func() []bootstrapv1.KubexmConfig {
		var all []bootstrapv1.KubexmConfig
		for _, c := range f.configs() {
			if conditions.IsFalse(&c, bootstrapv1.DisruptionAllowedCondition) {
				all = append(all, c)
			}
		}
		return all
	}
	f.Eventually(waiting, patience, 50*time.Millisecond).Should(HaveLen(1))
	waits := waiting()[0]
	reason := func() string {
		c := &bootstrapv1.KubexmConfig{}
		f.Expect(f.api.Get(t.Context(), client.ObjectKeyFromObject(&waits), c)).To(Succeed())
		return conditions.GetReason(c, bootstrapv1.DisruptionAllowedCondition)
	}
	address := waits.Status.Host.Address
	before := f.content(address)
	f.Expect(reason()).To(Equal(bootstrapv1.WaitingForApprovalReason))
	message := conditions.GetMessage(&waits, bootstrapv1.DisruptionAllowedCondition)
	f.Expect(message).To(ContainSubstring("* test/file: restarts the test"))
	f.Expect(message).To(ContainSubstring("waits for approval and then for the maintenance window that opens at Sat 2026-11-21 22:00 UTC"))
	f.Consistently(f.readyConfigs, blink, 50*time.Millisecond).Should(Equal(2))
	f.Expect(f.content(address)).To(Equal(before))

	approve := func(digest string) {
		t.Helper()
		c := waits.DeepCopy()
		f.Expect(f.api.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"`+bootstrapv1.ApprovedDisruptionAnnotation+`":"`+digest+`"}}}`)))).To(Succeed())
	}
	t.Log("an approval of something else is none")
	approve("0123456789abcdef")
	f.Consistently(reason, blink, 50*time.Millisecond).Should(Equal(bootstrapv1.WaitingForApprovalReason))

	t.Log("once it is approved, it waits for the window")
	found := regexp.MustCompile(bootstrapv1.ApprovedDisruptionAnnotation + "=([0-9a-f]{16}) ").FindStringSubmatch(message)
	f.Expect(found).To(HaveLen(2))
	approve(found[1])
	f.Eventually(reason, patience, 50*time.Millisecond).Should(Equal(bootstrapv1.OutsideMaintenanceWindowReason))
	f.Consistently(func() string { return f.content(address) }, blink, 50*time.Millisecond).Should(Equal(before))

	t.Log("in the window it is done, and what was agreed to counts no more then")
	f.clock.SetTime(time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC))
	f.Eventually(func() string { return f.content(address) }, patience, 50*time.Millisecond).Should(HaveSuffix(" masters\n"))
	f.Eventually(func(g Gomega) {
		c := &bootstrapv1.KubexmConfig{}
		g.Expect(f.api.Get(t.Context(), client.ObjectKeyFromObject(&waits), c)).To(Succeed())
		g.Expect(c.Annotations).NotTo(HaveKey(bootstrapv1.ApprovedDisruptionAnnotation))
		g.Expect(conditions.Has(c, bootstrapv1.DisruptionAllowedCondition)).To(BeFalse())
	}, patience, 50*time.Millisecond).Should(Succeed())

	t.Log("when it is over, somebody's change is shown and waits, too")
	f.clock.SetTime(time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC))
	f.machines[address].Put(made, "changed by somebody\n", 0o644)
	f.Eventually(reason, patience, 50*time.Millisecond).Should(Equal(bootstrapv1.WaitingForApprovalReason))
	f.Expect(f.content(address)).To(Equal("changed by somebody\n"))
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// waits is what the control plane says that it waits for, "" if it does not.
func (f *fleet) waits() string {
	f.turn()
	return conditions.GetReason(f.controlPlane(), controlplanev1.DisruptionAllowedCondition)
}

// TestDisruption: the replacement of Machines waits for somebody who agrees, and for a maintenance window.
func TestDisruption(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 4)
	f.stop()
	f.clock = clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	f.start()
	f.declare(1, controlplanev1.RollingUpdateStrategy)
	for path, patch := range map[string]string{
		"spec.cluster.disruption.maintenanceWindows[0].start": `{"spec":{"cluster":{"disruption":{"maintenanceWindows":[{"start":"0 25 * * *","durationMinutes":60}]}}}}`,
		"spec.node.disruption.maintenanceWindows[0].timeZone": `{"spec":{"node":{"disruption":{"maintenanceWindows":[{"start":"0 22 * * *","durationMinutes":60,"timeZone":"Mars/Phobos"}]}}}}`,
		"spec.rollout.strategy.inPlace":                       `{"spec":{"rollout":{"strategy":{"inPlace":{"canary":{"settleSeconds":60}}}}}}`,
	} {
		err := f.tryPatch("%s", patch)
		f.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", path, err)
		f.Expect(err).To(MatchError(ContainSubstring(path)))
	}
	f.patch(`{"spec":{"cluster":{"disruption":{"approval":"Required","maintenanceWindows":[{"start":"0 22 * * SAT","durationMinutes":60}]}}}}`)

	t.Log("the first installation waits for nothing")
	f.Eventually(f.done(older), patience, interval).Should(Succeed())
	before := f.names()

	t.Log("a rollout waits for approval")
	f.watch(3, 4)
	f.patch(`{"spec":{"version":%q}}`, newer)
	f.Eventually(f.waits, patience, interval).Should(Equal(controlplanev1.WaitingForApprovalReason))
	f.Expect(f.says(controlplanev1.RollingOutCondition)).To(ContainSubstring("* Waiting: The replacement of Machines waits for approval"))
	f.Consistently(func() []string { f.turn(); return f.names() }, blink, interval).Should(Equal(before))

	t.Log("an approval of something else is none")
	f.approve("0123456789abcdef")
	f.Consistently(f.waits, blink, interval).Should(Equal(controlplanev1.WaitingForApprovalReason))

	t.Log("once it is approved, it waits for the window")
	f.approve(f.shown())
	f.Eventually(f.waits, patience, interval).Should(Equal(controlplanev1.OutsideMaintenanceWindowReason))
	f.Consistently(func() []string { f.turn(); return f.names() }, blink, interval).Should(Equal(before))

	t.Log("in the window, it is done; what was agreed to counts no more then")
	f.clock.SetTime(time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC))
	f.patch(`{"metadata":{"labels":{"touched":"yes"}}}`)
	f.Eventually(f.done(newer), patience, interval).Should(Succeed())
	f.Expect(f.waits()).To(BeEmpty())
	f.Eventually(func() map[string]string { f.turn(); return f.controlPlane().Annotations }, patience, interval).ShouldNot(
		HaveKey(controlplanev1.ApprovedDisruptionAnnotation))
}

var digest = regexp.MustCompile(controlplanev1.ApprovedDisruptionAnnotation + "=([0-9a-f]{16}) ")

// shown is the digest of what is shown to be agreed to.
func (f *fleet) shown() string {
	f.t.Helper()
	found := digest.FindStringSubmatch(conditions.GetMessage(f.controlPlane(), controlplanev1.DisruptionAllowedCondition))
	f.Expect(found).To(HaveLen(2))
	return found[1]
}

func (f *fleet) approve(digest string) {
	f.t.Helper()
	f.patch(`{"metadata":{"annotations":{%q:%q}}}`, controlplanev1.ApprovedDisruptionAnnotation, digest)
}

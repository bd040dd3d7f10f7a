// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// done is whether the control plane and all of its Machines say that they are up to date.
func (f *fleet) done(version string) func(g Gomega) {
	return func(g Gomega) {
		f.turn()
		cp := f.controlPlane()
		g.Expect(cp.Status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: version, Replicas: 3}}))
		g.Expect(cp.Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(3)))
		for kind, want := range map[string]metav1.ConditionStatus{
			controlplanev1.MachinesUpToDateCondition: metav1.ConditionTrue, controlplanev1.RollingOutCondition: metav1.ConditionFalse,
			controlplanev1.ScalingUpCondition: metav1.ConditionFalse, controlplanev1.ScalingDownCondition: metav1.ConditionFalse,
		} {
			g.Expect(conditions.Get(cp, kind)).To(HaveField("Status", want), kind)
		}
	}
}

func (f *fleet) says(kind string) string {
	now := conditions.Get(f.controlPlane(), kind)
	if now == nil || now.Status != metav1.ConditionTrue {
		return ""
	}
	return now.Message
}

func TestRollingUpdate(t *testing.T) {
	t.Parallel() // most of it is waiting
	for name, test := range map[string]struct {
		hosts    int
		maxSurge int32
		// least is how many Machines are well at any time, most how many there are.
		least, most int
	}{
		"one more":   {hosts: 4, maxSurge: 1, least: 3, most: 4},
		"one less":   {hosts: 3, maxSurge: 0, least: 2, most: 3},
		"with spare": {hosts: 6, maxSurge: 1, least: 3, most: 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, test.hosts)
			f.declare(test.maxSurge, controlplanev1.RollingUpdateStrategy)
			f.Eventually(f.done(older), patience, interval).Should(Succeed())
			before := f.names()

			f.watch(test.least, test.most)
			f.patch(`{"spec":{"version":%q}}`, newer)
			f.Eventually(f.says, patience, interval).WithArguments(controlplanev1.RollingOutCondition).Should(
				HavePrefix("Rolling out 3 not up-to-date replicas\n* Version %s, %s required", older, newer))
			f.Eventually(f.done(newer), patience, interval).Should(Succeed())
			for _, name := range f.names() {
				f.Expect(before).NotTo(ContainElement(name), "all Machines are others")
			}
			f.Expect(f.restarts).To(BeNumerically(">", 3), "the reconciler was to be restarted between acts")
		})
	}
}

// TestEtcdIsSaved once before the first Machine is made for another version; where it cannot be, no Machine is.
func TestEtcdIsSaved(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 4)
	f.stop()
	f.clock = clocktesting.NewFakePassiveClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	f.start()
	f.declare(1, controlplanev1.RollingUpdateStrategy)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())
	before := f.names()
	preflight := func() *metav1.Condition {
		f.turn()
		return conditions.Get(f.controlPlane(), controlplanev1.PreflightPassedCondition)
	}
	f.Expect(preflight()).To(BeNil())

	f.full = "host host3: etcd gives no snapshot: there is no space"
	f.patch(`{"spec":{"version":%q}}`, newer)
	f.Eventually(preflight, patience, interval).Should(SatisfyAll(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.EtcdNotSavedReason),
		HaveField("Message", ContainSubstring(f.full)),
		HaveField("Message", ContainSubstring("kubectl annotate kubexmcontrolplane -n "+f.namespace+" prod "+controlplanev1.EtcdSavedAnnotation+"="+newer))))
	f.Eventually(func() string { f.turn(); return f.says(controlplanev1.RollingOutCondition) }, patience, interval).Should(
		ContainSubstring("* Waiting: no snapshot of etcd could be saved"))
	f.Consistently(func() []string { f.turn(); return f.names() }, blink, interval).Should(Equal(before))

	f.full = ""
	f.clock.SetTime(f.clock.Now().Add(2 * time.Minute))
	f.Eventually(f.done(newer), patience, interval).Should(Succeed())
	f.Expect(f.saved).To(HaveLen(1))
	f.Expect(preflight()).To(BeNil())
	f.Eventually(func() map[string]string { f.turn(); return f.controlPlane().Annotations }, patience, interval).ShouldNot(
		HaveKey(controlplanev1.EtcdSavedAnnotation))

	t.Log("hosts that follow in place save their own")
	f.patch(`{"spec":{"rollout":{"strategy":{"type":"InPlace"}}}}`)
	f.patch(`{"spec":{"version":"v1.37.1"}}`)
	f.Eventually(f.done("v1.37.1"), patience, interval).Should(Succeed())
	f.Expect(f.saved).To(HaveLen(1))
}

// TestRemovedAPIsAreInUse: no host is touched for a version that does not serve them, until that is accepted.
func TestRemovedAPIsAreInUse(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3)
	f.declare(1, controlplanev1.InPlaceStrategy)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())
	const api = "flowschemas in flowcontrol.apiserver.k8s.io/v1beta3, which is not served any more from v1.36 on: 2 objects are written by it"
	f.inUse.Store(&[]string{api})
	f.patch(`{"spec":{"version":%q}}`, newer)
	f.Eventually(func() *metav1.Condition {
		f.turn()
		return conditions.Get(f.controlPlane(), controlplanev1.PreflightPassedCondition)
	}, patience, interval).Should(SatisfyAll(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.RemovedAPIsInUseReason),
		HaveField("Message", ContainSubstring("* "+api)),
		HaveField("Message", ContainSubstring(controlplanev1.AcceptedRemovedAPIsAnnotation+"="+newer))))
	f.Consistently(func() int { f.turn(); return f.asked(newer) }, blink, interval).Should(Equal(0))
	f.patch(`{"metadata":{"annotations":{%q:%q}}}`, controlplanev1.AcceptedRemovedAPIsAnnotation, newer)
	f.Eventually(f.done(newer), patience, interval).Should(Succeed())
	f.Eventually(func() map[string]string { f.turn(); return f.controlPlane().Annotations }, patience, interval).ShouldNot(
		HaveKey(controlplanev1.AcceptedRemovedAPIsAnnotation))
	f.Expect(conditions.Get(f.controlPlane(), controlplanev1.PreflightPassedCondition)).To(BeNil())
}

func TestInPlace(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3)
	f.declare(1, controlplanev1.InPlaceStrategy)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())
	before := f.names()

	t.Log("a host that fails stops it, and says why")
	f.fails = "step kubelet/service on host host1 failed: the unit did not start"
	f.watch(2, 3)
	f.patch(`{"spec":{"version":%q}}`, newer)
	f.Eventually(func() string {
		f.turn()
		return f.says(controlplanev1.RollingOutCondition)
	}, patience, interval).Should(ContainSubstring(f.fails))
	f.Consistently(func() int { f.turn(); return f.asked(newer) }, blink, interval).Should(Equal(1))

	t.Log("it may be taken back, and tried again")
	f.fails = ""
	f.patch(`{"spec":{"version":%q}}`, older)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())
	f.fails = "step kubelet/service on host host1 failed: the unit did not start"
	f.patch(`{"spec":{"version":%q}}`, newer)
	f.Eventually(func() string {
		f.turn()
		return f.says(controlplanev1.RollingOutCondition)
	}, patience, interval).Should(ContainSubstring(f.fails))

	t.Log("when it is repaired, the others follow on the same hosts")
	f.fails = ""
	f.Eventually(f.done(newer), patience, interval).Should(Succeed())
	f.Expect(f.names()).To(Equal(before))
	f.Expect(f.restarts).To(BeNumerically(">", 1))

	t.Log("there is no way back, and no minor version is skipped")
	for _, version := range []string{older, "v1.38.0"} {
		err := f.tryPatch(`{"spec":{"version":%q}}`, version)
		f.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		f.Expect(err).To(MatchError(ContainSubstring("spec.version")))
	}
}

// TestWhileTheAPIServerIsAway has nothing changed that nobody can look at, and goes on when it answers.
func TestWhileTheAPIServerIsAway(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 4)
	f.declare(1, controlplanev1.RollingUpdateStrategy)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())
	f.watch(3, 4)
	f.patch(`{"spec":{"version":%q}}`, newer)
	f.Eventually(func() []string { f.turn(); return f.names() }, patience, interval).Should(HaveLen(4))
	f.away.Store(true)
	f.Eventually(func() string { f.turn(); return f.says(controlplanev1.RollingOutCondition) }, patience, interval).Should(
		ContainSubstring("* Waiting: the cluster cannot be observed: " + errAway.Error()))
	f.Consistently(func() []string { f.turn(); return f.names() }, blink, interval).Should(HaveLen(4))
	f.away.Store(false)
	f.Eventually(f.done(newer), patience, interval).Should(Succeed())
}

func TestNoHostToSpare(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3)
	f.declare(1, controlplanev1.RollingUpdateStrategy)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())

	f.patch(`{"spec":{"version":%q}}`, newer)
	for _, kind := range []string{controlplanev1.RollingOutCondition, controlplanev1.ScalingUpCondition} {
		f.Eventually(func() string { f.turn(); return f.says(kind) }, patience, interval).Should(ContainSubstring(noHost), kind)
	}
	f.Expect(f.names()).To(HaveLen(4))

	t.Log("then one goes first, and what waited for a host is not waited for")
	f.watch(2, 4)
	f.patch(`{"spec":{"rollout":{"strategy":{"rollingUpdate":{"maxSurge":0}}}}}`)
	f.Eventually(f.done(newer), patience, interval).Should(Succeed())
}

func TestMachinesThatAreReplaced(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 4)
	f.declare(1, controlplanev1.InPlaceStrategy)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())

	t.Log("one that somebody deletes, when it is gone")
	before := f.names()
	gone := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: before[0]}}
	f.Expect(api.Delete(t.Context(), gone)).To(Succeed())
	f.Eventually(func(g Gomega) {
		f.turn()
		g.Expect(f.names()).To(SatisfyAll(HaveLen(3), Not(ContainElement(gone.Name))))
		f.done(older)(g)
	}, patience, interval).Should(Succeed())

	t.Log("all of them, when they are to be made from another template, whatever the strategy; with names as they are to be")
	before = f.names()
	f.create(&infrav1.KubexmMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	f.watch(3, 4)
	f.patch(`{"spec":{"machineNaming":{"template":"{{ .cluster.name }}-m{{ .random }}"},"machineTemplate":{"spec":{"infrastructureRef":{"name":"other"}}}}}`)
	f.Eventually(func(g Gomega) {
		f.turn()
		for _, name := range f.names() {
			g.Expect(before).NotTo(ContainElement(name))
			g.Expect(name).To(HavePrefix("prod-m"))
		}
		f.done(older)(g)
	}, patience, interval).Should(Succeed())
}

func (f *fleet) tryPatch(format string, args ...any) error {
	cp := &controlplanev1.KubexmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "prod"}}
	return api.Patch(f.t.Context(), cp, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, format, args...)))
}

func (f *fleet) patch(format string, args ...any) {
	f.t.Helper()
	f.Expect(f.tryPatch(format, args...)).To(Succeed())
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// check has a MachineHealthCheck find a Machine healthy or not.
func (f *fleet) check(name string, healthy bool) {
	f.t.Helper()
	machines := f.machines()
	m := &machines[slices.IndexFunc(machines, func(m clusterv1.Machine) bool { return m.Name == name })]
	f.change(m, func() {
		status := metav1.ConditionTrue
		if !healthy {
			status = metav1.ConditionFalse
			conditions.Set(m, metav1.Condition{
				Type: clusterv1.MachineOwnerRemediatedCondition, Status: status,
				Reason: clusterv1.MachineOwnerRemediatedWaitingForRemediationReason,
			})
		}
		conditions.Set(m, metav1.Condition{
			Type: clusterv1.MachineHealthCheckSucceededCondition, Status: status,
			Reason: clusterv1.MachineHealthCheckUnhealthyNodeReason, Message: "the Node is not ready",
		})
	})
}

// ownerRemediated is what is said of the replacement of a Machine, "" if nothing.
func (f *fleet) ownerRemediated(name string) string {
	for _, m := range f.machines() {
		if now := conditions.Get(&m, clusterv1.MachineOwnerRemediatedCondition); m.Name == name && now != nil {
			return now.Reason + ": " + now.Message
		}
	}
	return ""
}

// converged is when the host of a Machine was asked to converge again, "" if it was not.
func (f *fleet) converged(name string) string {
	config := &bootstrapv1.KubexmConfig{}
	f.Expect(api.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, config)).To(Succeed())
	return config.Annotations[bootstrapv1.ConvergeAnnotation]
}

// asksToReboot is when the host of a Machine was asked to reboot, "" if it was not.
func (f *fleet) asksToReboot(name string) string {
	config := &bootstrapv1.KubexmConfig{}
	f.Expect(api.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, config)).To(Succeed())
	return config.Annotations[bootstrapv1.RebootAnnotation]
}

// replaced is whether an unhealthy Machine is gone, another is in its place, and the control plane says so.
func (f *fleet) replaced(name string) func(g Gomega) {
	return func(g Gomega) {
		f.turn()
		g.Expect(f.names()).To(SatisfyAll(HaveLen(3), Not(ContainElement(name))))
		cp := f.controlPlane()
		g.Expect(cp.Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))
		g.Expect(cp.Status.LastRemediation.Machine).To(Equal(name))
		g.Expect(conditions.IsFalse(cp, controlplanev1.RemediatingCondition)).To(BeTrue())
		f.done(older)(g)
	}
}

func TestRemediation(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 5)
	f.declare(1, controlplanev1.RollingUpdateStrategy)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())

	t.Log("the host of an unhealthy Machine is converged again, and that is enough")
	unhealthy := f.names()[1]
	f.check(unhealthy, false)
	f.Eventually(f.ownerRemediated, patience,
		interval).WithArguments(unhealthy).Should(HavePrefix(controlplanev1.RemediationDeferredReason + ": its host"))
	f.Expect(f.converged(unhealthy)).NotTo(BeEmpty())
	f.check(unhealthy, true)
	f.Eventually(f.ownerRemediated, patience, interval).WithArguments(unhealthy).Should(BeEmpty())
	f.Expect(f.names()).To(ContainElement(unhealthy))

	t.Log("where it is not, it is rebooted, and where that is not enough either, the Machine is replaced, whenever the reconciler is restarted")
	f.patch(`{"spec":{"remediation":{"convergeTimeoutSeconds":1,"rebootTimeoutSeconds":2}}}`)
	unhealthy = f.names()[2]
	f.watch(2, 3)
	f.check(unhealthy, false)
	f.Eventually(f.asksToReboot, patience, interval).WithArguments(unhealthy).ShouldNot(BeEmpty())
	f.Expect(f.asksToReboot(unhealthy) > f.converged(unhealthy)).To(BeTrue(), "it was rebooted before it was converged")
	f.Eventually(func() string {
		return f.says(controlplanev1.RemediatingCondition)
	}, patience, interval).Should(ContainSubstring("Machine " + unhealthy + ": "))
	f.Eventually(f.replaced(unhealthy), patience, interval).Should(Succeed())
	successor := ""
	for _, m := range f.machines() {
		if r := snapshot.ParseRecord(m.Annotations[controlplanev1.RemediationForAnnotation]); r != nil {
			f.Expect(r.Machine).To(Equal(unhealthy))
			successor = m.Name
		}
	}
	f.Expect(successor).NotTo(BeEmpty())

	t.Log("its successor is not, as no retry is allowed, and says so until it is healthy")
	f.patch(`{"spec":{"remediation":{"maxRetry":0}}}`)
	f.check(successor, false)
	f.Eventually(f.ownerRemediated, patience,
		interval).WithArguments(successor).Should(HavePrefix(controlplanev1.CannotBeRemediatedReason + ": it replaced the unhealthy Machine " + unhealthy))
	f.check(successor, true)
	f.Eventually(f.ownerRemediated, patience, interval).WithArguments(successor).Should(BeEmpty())
}

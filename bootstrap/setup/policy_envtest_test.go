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
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestPolicies: drift is reported and left until somebody asks for its repair; a host that does not answer makes no Machine unready, and
// keeps none that is deleted for longer than is declared.
func TestPolicies(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3)
	defer f.explain()
	f.declare(func(cp *controlplanev1.KubexmControlPlane) {
		cp.Spec.Cluster.DriftPolicy = spec.DriftReport
		cp.Spec.Cluster.Reset = spec.Reset{TimeoutSeconds: ptr.To[int32](2)}
	})
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	config, machine := f.worker(f)
	address := config.Status.Host.Address
	planned := f.content(address)

	t.Log("what somebody changed is shown, and stays")
	f.machines[address].Put(made, "changed by somebody\n", 0o644)
	f.Eventually(func(g Gomega) {
		config, _ := f.worker(g)
		g.Expect(conditions.GetReason(config, bootstrapv1.HostConvergedCondition)).To(Equal(bootstrapv1.DriftedReason))
		message := conditions.GetMessage(config, bootstrapv1.HostConvergedCondition)
		g.Expect(message).To(ContainSubstring("file " + made + ": found "))
		g.Expect(message).To(ContainSubstring("reported, and not repaired"))
		g.Expect(conditions.IsTrue(config, bootstrapv1.ReadyCondition)).To(BeTrue())
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Consistently(func() string { return f.content(address) }, 3*time.Second, 50*time.Millisecond).Should(Equal("changed by somebody\n"))
	f.Expect(f.notes(bootstrapv1.DriftedReason)).To(HaveLen(1))

	t.Log("until somebody asks for its repair")
	f.Expect(f.api.Patch(t.Context(), config, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"now"}}}`, bootstrapv1.ConvergeAnnotation)))).To(Succeed())
	f.Eventually(func() string { return f.content(address) }, patience, 50*time.Millisecond).Should(Equal(planned))
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))

	t.Log("a host that does not answer makes its Machine's bootstrap no less ready")
	f.setDown(address, host.KindAuth) // which is final: nothing is dialled for a minute
	f.Eventually(func(g Gomega) {
		config, _ := f.worker(g)
		g.Expect(conditions.IsFalse(config, bootstrapv1.HostReachableCondition)).To(BeTrue())
		g.Expect(conditions.IsFalse(config, bootstrapv1.HostReadyCondition)).To(BeTrue())
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Consistently(func(g Gomega) {
		_, machine := f.worker(g)
		g.Expect(conditions.IsTrue(machine, clusterv1.MachineBootstrapConfigReadyCondition)).To(BeTrue())
	}, 2*time.Second, 50*time.Millisecond).Should(Succeed())

	t.Log("its Machine, though healthy, does not wait for its reset for ever")
	f.Expect(f.api.Delete(t.Context(), machine)).To(Succeed())
	f.Eventually(func() bool {
		return apierrors.IsNotFound(f.api.Get(t.Context(), client.ObjectKeyFromObject(machine), machine))
	}, patience, 50*time.Millisecond).Should(BeTrue())
	f.Eventually(f.notes, patience, 50*time.Millisecond).WithArguments(bootstrapv1.HostResetSkippedReason).Should(ConsistOf(
		ContainSubstring("was released without a reset after 2s (reset.timeoutSeconds)")))
	left := &infrav1.KubexmHost{}
	f.Expect(f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: config.Status.Host.Name}, left)).To(Succeed())
	f.Expect(conditions.GetReason(left, infrav1.AvailableCondition)).To(Equal(infrav1.QuarantinedReason))
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
}

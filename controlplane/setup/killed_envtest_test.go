// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// most of a reconciler's writes that get through before it is killed. A Machine with what it consists of takes three, one after the
// other.
const most = 7

// kill has every reconciler from now on killed after one, two, three … of its writes, in the midst of what it does.
func (f *fleet) kill() {
	f.t.Helper()
	f.stop()
	f.writes, f.restarts = func(restarts int) int { return 1 + restarts%most }, 0
	f.start()
}

// expectNothingLeft wants the Machines to have what they consist of, and nothing to be left of those that were never made.
func (f *fleet) expectNothingLeft() {
	f.t.Helper()
	machines, infra, configs := f.names(), &infrav1.KubexmMachineList{}, &bootstrapv1.KubexmConfigList{}
	f.Expect(api.List(f.t.Context(), infra, client.InNamespace(f.namespace))).To(Succeed())
	f.Expect(api.List(f.t.Context(), configs, client.InNamespace(f.namespace))).To(Succeed())
	var names []string
	for i := range configs.Items {
		names = append(names, configs.Items[i].Name)
	}
	f.Expect(names).To(ConsistOf(machines), "KubexmConfigs")
	names = nil
	for i := range infra.Items {
		names = append(names, infra.Items[i].Name)
	}
	f.Expect(names).To(ConsistOf(machines), "KubexmMachines")
}

// TestKilled kills the reconciler in the midst of all that it does: a control plane that is made, rolled out both ways, in place,
// and repaired gets there, with no more Machines away at once than without that.
func TestKilled(t *testing.T) {
	t.Parallel() // most of it is waiting
	for name, test := range map[string]struct {
		hosts       int
		strategy    controlplanev1.RolloutStrategyType
		maxSurge    int32
		least, most int
	}{
		"one more": {hosts: 4, strategy: controlplanev1.RollingUpdateStrategy, maxSurge: 1, least: 3, most: 4},
		"one less": {hosts: 3, strategy: controlplanev1.RollingUpdateStrategy, maxSurge: 0, least: 2, most: 3},
		"in place": {hosts: 3, strategy: controlplanev1.InPlaceStrategy, maxSurge: 1, least: 2, most: 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, test.hosts)
			f.kill()
			f.declare(test.maxSurge, test.strategy)
			f.Eventually(f.done(older), patience, interval).Should(Succeed())
			f.expectNothingLeft()

			f.least, f.most = test.least, test.most
			f.patch(`{"spec":{"version":%q}}`, newer)
			f.Eventually(f.done(newer), patience, interval).Should(Succeed())
			f.expectNothingLeft()
			f.Expect(f.restarts).To(BeNumerically(">", most), "reconcilers were to be killed after any number of writes")
		})
	}

	t.Run("remediation", func(t *testing.T) {
		f := newFleet(t, 4)
		f.declare(1, controlplanev1.RollingUpdateStrategy)
		f.patch(`{"spec":{"remediation":{"convergeTimeoutSeconds":1,"rebootTimeoutSeconds":1}}}`)
		f.Eventually(f.done(older), patience, interval).Should(Succeed())
		f.kill()
		unhealthy := f.names()[0]
		f.least, f.most = 2, 3
		f.check(unhealthy, false)
		f.Eventually(f.replaced(unhealthy), patience, interval).Should(Succeed())
		f.expectNothingLeft()
		f.Expect(f.restarts).To(BeNumerically(">", 3))
	})
}

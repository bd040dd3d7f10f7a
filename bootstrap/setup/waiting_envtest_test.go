// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// TestWhatIsWaitedForComes: a host that is as it must be says that it waits while its cluster's certificate authority is missing, and no
// longer than that, though it is long until the next look.
func TestWhatIsWaitedForComes(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2, func(f *fleet) { f.lookEvery = time.Hour })
	defer f.explain()
	f.declare()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))

	ca := &corev1.Secret{}
	f.Expect(f.api.Get(t.Context(),
		client.ObjectKey{Namespace: namespace, Name: capisecret.Name("prod", capisecret.ClusterCA)}, ca)).To(Succeed())
	f.Expect(f.api.Delete(t.Context(), ca)).To(Succeed())
	f.Eventually(func() (waiting int) {
		for _, c := range f.configs() {
			if conditions.GetReason(&c, bootstrapv1.HostConvergedCondition) == bootstrapv1.WaitingForClusterReason {
				waiting++
			}
		}
		return waiting
	}, patience, 50*time.Millisecond).Should(Equal(2))

	ca.ResourceVersion, ca.UID = "", ""
	f.Expect(f.api.Create(t.Context(), ca)).To(Succeed())
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosthealth_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// TestAwaitsHooks: a Machine that is still drained, or whose volumes are still detached, waits for more than hooks.
func TestAwaitsHooks(t *testing.T) {
	m := &clusterv1.Machine{}
	if hosthealth.AwaitsHooks(m) {
		t.Error("one of which nothing is said awaits hooks")
	}
	for reason, want := range map[string]bool{
		clusterv1.MachineDeletingWaitingForPreTerminateHookReason: true,
		clusterv1.MachineDeletingWaitingForPreDrainHookReason:     false,
		clusterv1.MachineDeletingDrainingNodeReason:               false,
		clusterv1.MachineDeletingWaitingForVolumeDetachReason:     false,
	} {
		conditions.Set(m, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: reason})
		if got := hosthealth.AwaitsHooks(m); got != want {
			t.Errorf("%s: %t", reason, got)
		}
	}
}

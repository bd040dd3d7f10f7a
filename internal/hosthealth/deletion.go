// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosthealth

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// AwaitsHooks reports whether a Machine's deletion waits for nothing but pre-terminate hooks: its Node is drained by then. The condition
// may outlive a deletion that a move has left behind.
func AwaitsHooks(m *clusterv1.Machine) bool {
	return conditions.GetReason(m, clusterv1.MachineDeletingCondition) == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
}

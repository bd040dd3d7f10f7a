// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// TestNotJustAlive: the heartbeats of a thousand free hosts have nobody reconciled, and all that a choice depends on has.
func TestNotJustAlive(t *testing.T) {
	reachable := func(h *infrav1.KubexmHost, status metav1.ConditionStatus, reason string) {
		conditions.Set(h, metav1.Condition{Type: infrav1.ReachableCondition, Status: status, Reason: reason})
	}
	was := &infrav1.KubexmHost{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
	reachable(was, metav1.ConditionTrue, infrav1.ReachedReason)
	was.Status.Facts = infrav1.HostFacts{CPUs: 4, ObservedTime: metav1.Now()}
	for name, test := range map[string]struct {
		change func(*infrav1.KubexmHost)
		passes bool
	}{
		"it has answered again": {change: func(h *infrav1.KubexmHost) {
			later := metav1.NewTime(time.Now().Add(time.Hour))
			h.Status.LastHeartbeatTime, h.Status.Facts.ObservedTime = later, later
		}},
		"it does not answer any more": {func(h *infrav1.KubexmHost) { reachable(h, metav1.ConditionFalse, infrav1.UnreachableReason) }, true},
		"it has more processors":      {func(h *infrav1.KubexmHost) { h.Status.Facts.CPUs = 8 }, true},
		"it is claimed":               {func(h *infrav1.KubexmHost) { h.Spec.ClaimRef.Name = "m" }, true},
		"it has a label":              {func(h *infrav1.KubexmHost) { h.Labels = map[string]string{"role": "worker"} }, true},
		"nothing, from time to time":  {func(h *infrav1.KubexmHost) { h.ResourceVersion = "1" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			is := was.DeepCopy()
			is.ResourceVersion = "2"
			test.change(is)
			if got := notJustAlive().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != test.passes {
				t.Errorf("it passes: %t", got)
			}
		})
	}
}

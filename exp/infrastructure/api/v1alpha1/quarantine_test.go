// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// TestRelease: a host whose claim ends is in quarantine by its specification, unless it is known to have been reset.
func TestRelease(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		clean *metav1.Condition
		was   Quarantine
		want  string
	}{
		"reset":  {clean: &metav1.Condition{Status: metav1.ConditionTrue, Reason: ResetReason}},
		"in use": {clean: &metav1.Condition{Status: metav1.ConditionFalse, Reason: InUseReason}, want: NotResetReason},
		"the reset failed": {clean: &metav1.Condition{Status: metav1.ConditionFalse, Reason: ResetFailedReason, Message: "no disk"},
			want: ResetFailedReason},
		"nothing is known":       {want: NotResetReason},
		"reset after it was not": {clean: &metav1.Condition{Status: metav1.ConditionTrue, Reason: ResetReason}, was: Quarantine{Reason: NotResetReason}},
		"reset, and kept by hand": {clean: &metav1.Condition{Status: metav1.ConditionTrue, Reason: ResetReason},
			was: Quarantine{Reason: "BrokenFan"}, want: "BrokenFan"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &KubexmHost{Spec: KubexmHostSpec{ClaimRef: MachineReference{Name: "m", ClusterName: "prod"}, Quarantine: tc.was}}
			if tc.clean != nil {
				tc.clean.Type = CleanCondition
				conditions.Set(h, *tc.clean)
			}
			h.Release(now)
			q := h.Spec.Quarantine
			if h.Spec.ClaimRef != (MachineReference{}) || q.Reason != tc.want {
				t.Errorf("claimed by %v, quarantine %v", h.Spec.ClaimRef, q)
			}
			if tc.want != "" && tc.was.Reason == "" && (!strings.Contains(q.Message, "the KubexmMachine m of the Cluster prod") || !q.Time.Equal(&now)) {
				t.Errorf("it says %v", q)
			}
		})
	}
}

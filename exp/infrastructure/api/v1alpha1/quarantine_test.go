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
			h := &KubexmHost{Spec: KubexmHostSpec{Quarantine: tc.was}}
			h.Claim(MachineReference{Name: "m", ClusterName: "prod"})
			if tc.clean != nil {
				tc.clean.Type = CleanCondition
				conditions.Set(h, *tc.clean)
			}
			h.Release(now)
			q := h.Spec.Quarantine
			if h.Spec.ClaimRef != (MachineReference{}) || len(h.Finalizers) > 0 || q.Reason != tc.want {
				t.Errorf("claimed by %v, finalizers %v, quarantine %v", h.Spec.ClaimRef, h.Finalizers, q)
			}
			if tc.want != "" && tc.was.Reason == "" && (!strings.Contains(q.Message, "the KubexmMachine m of the Cluster prod") || !q.Time.Equal(&now)) {
				t.Errorf("it says %v", q)
			}
		})
	}
}

// TestUse: a host says who uses it, and who has left it, and nothing of what it was to others before.
func TestUse(t *testing.T) {
	for kind, want := range map[string]string{"": ClaimedByMachine, ClaimedByConfig: ClaimedByConfig} {
		h := &KubexmHost{}
		conditions.Set(h, metav1.Condition{Type: ReachableCondition, Status: metav1.ConditionFalse, Reason: "Unreachable"})
		conditions.Set(h, metav1.Condition{Type: CleanCondition, Status: metav1.ConditionTrue, Reason: ResetReason})
		h.Claim(MachineReference{Kind: kind, Name: "m", ClusterName: "prod"})
		h.Claim(h.Spec.ClaimRef)
		if len(h.Finalizers) != 1 || h.Finalizers[0] != HostFinalizer {
			t.Errorf("the finalizers are %v", h.Finalizers)
		}
		h.MarkInUse()
		is := func(reason, message string) {
			t.Helper()
			c := conditions.Get(h, CleanCondition)
			if c.Status != metav1.ConditionFalse || c.Reason != reason || c.Message != "the "+want+" m of the Cluster prod "+message {
				t.Errorf("Clean is %v", c)
			}
		}
		is(InUseReason, "uses the host")
		if conditions.Has(h, ReachableCondition) {
			t.Error("it is said to answer, or not to, of which nothing is known now")
		}
		h.MarkNotReset()
		is(NotResetReason, "released the host without a reset")
	}
}

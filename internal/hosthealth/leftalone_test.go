// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosthealth_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// TestLeftAlone: who is in maintenance or paused is left alone, and what ended last is when that was so last.
func TestLeftAlone(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.Date(2026, 11, 24, 12, minute, 0, 0, time.UTC) }
	is := func(kind string, status metav1.ConditionStatus, reason string, since metav1.Time) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "a new disk", LastTransitionTime: since}
	}
	unreached := is(bootstrapv1.HostReachableCondition, metav1.ConditionFalse, bootstrapv1.HostInMaintenanceReason, at(1))
	maintained := is(bootstrapv1.InMaintenanceCondition, metav1.ConditionTrue, bootstrapv1.HostInMaintenanceReason, at(1))
	ended := is(bootstrapv1.InMaintenanceCondition, metav1.ConditionFalse, bootstrapv1.MaintenanceEndedReason, at(7))
	paused := is(clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason, at(2))
	unpaused := func(minute int) metav1.Condition {
		return is(clusterv1.PausedCondition, metav1.ConditionFalse, clusterv1.NotPausedReason, at(minute))
	}
	for name, tc := range map[string]struct {
		said  []metav1.Condition
		why   string
		until metav1.Time
	}{
		"never":                            {},
		"in maintenance":                   {[]metav1.Condition{maintained, unreached, unpaused(0)}, "HostInMaintenance: a new disk", at(0)},
		"whose infrastructure is not seen": {[]metav1.Condition{maintained}, "HostInMaintenance: a new disk", metav1.Time{}},
		"as an older manager has it":       {[]metav1.Condition{unreached}, "HostInMaintenance: a new disk", metav1.Time{}},
		"paused":                           {[]metav1.Condition{ended, paused}, "Paused: its KubexmConfig is paused: a new disk", at(7)},
		"it has ended":                     {[]metav1.Condition{ended, unpaused(3)}, "", at(7)},
		"it has ended, and a pause later":  {[]metav1.Condition{ended, unpaused(9)}, "", at(9)},
	} {
		t.Run(name, func(t *testing.T) {
			c := &bootstrapv1.KubexmConfig{Status: bootstrapv1.KubexmConfigStatus{Conditions: tc.said}}
			if got := hosthealth.WithReason(hosthealth.LeftAlone(c)); got != tc.why {
				t.Errorf("%q, want %q", got, tc.why)
			}
			if got := hosthealth.LeftAloneUntil(c); !got.Equal(tc.until.Time) {
				t.Errorf("until %s, want %s", got, tc.until)
			}
		})
	}
	if hosthealth.LeftAlone(nil) != nil || !hosthealth.LeftAloneUntil(nil).IsZero() ||
		hosthealth.Answer(nil, bootstrapv1.RebootOperation, at(0).Time) != nil {
		t.Error("who has no KubexmConfig is left alone, or answers")
	}
}

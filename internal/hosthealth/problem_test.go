// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosthealth_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// TestProblem: the first condition that is asked for and False tells; what is not known, or under way, is no problem.
func TestProblem(t *testing.T) {
	c := &bootstrapv1.KubexmConfig{}
	is := func(kind string, status metav1.ConditionStatus, reason, message string) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
	is(bootstrapv1.HostReachableCondition, metav1.ConditionTrue, bootstrapv1.HostReachableReason, "")
	is(bootstrapv1.PreflightPassedCondition, metav1.ConditionUnknown, bootstrapv1.NotStartedReason, "")
	is(bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, bootstrapv1.ConvergingReason, "converged 3/5 steps")
	is(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.NodeNotReadyReason, "Node w1 is not Ready")
	is("Other", metav1.ConditionFalse, "NoWords", "")
	for _, tt := range []struct {
		kinds []string
		want  string
	}{
		{nil, ""},
		{[]string{bootstrapv1.HostReachableCondition, bootstrapv1.PreflightPassedCondition, bootstrapv1.HostConvergedCondition, "Absent"}, ""},
		{[]string{bootstrapv1.HostConvergedCondition, bootstrapv1.NodeJoinedCondition, "Other"}, "NodeNotReady: Node w1 is not Ready"},
		{[]string{"Other", bootstrapv1.NodeJoinedCondition}, "NoWords"},
	} {
		if got := hosthealth.WithReason(hosthealth.Problem(c, tt.kinds...)); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.kinds, got, tt.want)
		}
	}
}

// TestMissing: what a host waits for is the first condition that is False, under way or not, and the summary where no other is.
func TestMissing(t *testing.T) {
	c := &bootstrapv1.KubexmConfig{}
	is := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
	wants := func(want string) {
		t.Helper()
		if got := hosthealth.WithReason(hosthealth.Missing(c)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	wants("")
	is(bootstrapv1.HostReachableCondition, metav1.ConditionUnknown, bootstrapv1.NotStartedReason, "")
	is(bootstrapv1.HostReadyCondition, metav1.ConditionFalse, bootstrapv1.NotStartedReason, "HostReachable")
	wants("NotStarted: HostReachable")
	is(bootstrapv1.DisruptionAllowedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForApprovalReason, "agree to it")
	wants("WaitingForApproval: agree to it")
	is(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForNodeReason, "")
	is(bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, bootstrapv1.ConvergingReason, "converged 3/5 steps")
	wants("Converging: converged 3/5 steps")
	is(bootstrapv1.HostResetCondition, metav1.ConditionFalse, bootstrapv1.ResettingReason, "1 of 3 changes restored")
	wants("Resetting: 1 of 3 changes restored")
}

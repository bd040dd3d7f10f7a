// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosthealth_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

func TestBehind(t *testing.T) {
	const version = "v1.36.3"
	for name, test := range map[string]struct {
		change func(*bootstrapv1.KubexmConfig)
		want   string
		// without is what is wanted of no version in particular, if that is something else.
		without *string
	}{
		"as planned": {change: func(*bootstrapv1.KubexmConfig) {}},
		"nothing is known": {
			change: func(c *bootstrapv1.KubexmConfig) { c.Status.Conditions = nil },
			want:   "it is not as planned yet",
		},
		"a step failed": {
			change: func(c *bootstrapv1.KubexmConfig) {
				c.Status.Conditions[0].Status, c.Status.Conditions[0].Message = metav1.ConditionFalse, "the kubelet exited"
			},
			want: "it is not as planned yet: the kubelet exited",
		},
		"another version": {
			change:  func(c *bootstrapv1.KubexmConfig) { c.Status.KubernetesVersion = "v1.35.4" },
			want:    "it has v1.35.4, and is to have v1.36.3",
			without: new(string),
		},
		"another version, for which it waits": {
			change: func(c *bootstrapv1.KubexmConfig) {
				c.Status.KubernetesVersion = "v1.35.4"
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
					Type: bootstrapv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
					Reason: bootstrapv1.WaitingForApprovalReason,
				})
			},
			want:    "it has v1.35.4, and is to have v1.36.3; WaitingForApproval, says its DisruptionAllowed",
			without: new(string),
		},
		"no version": {
			change:  func(c *bootstrapv1.KubexmConfig) { c.Status.KubernetesVersion = "" },
			want:    "it is not known to have v1.36.3 yet",
			without: new(string),
		},
		"a run goes on": {
			change: func(c *bootstrapv1.KubexmConfig) {
				c.Status.OperationFor(bootstrapv1.ConvergeOperation).EndTime = metav1.Time{}
			},
			want: "a change is being made at present",
		},
		"its spec was changed since": {
			change: func(c *bootstrapv1.KubexmConfig) { c.Generation++ },
			want:   "it does not have the last change of its KubexmConfig yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: bootstrapv1.KubexmConfigStatus{
				Conditions:        []metav1.Condition{{Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionTrue}},
				KubernetesVersion: version, ConvergedGeneration: 2,
				Operations: []bootstrapv1.OperationStatus{{
					Type: bootstrapv1.ConvergeOperation, StartTime: metav1.Unix(1, 0), EndTime: metav1.Unix(2, 0),
				}},
			}}
			test.change(c)
			if got := hosthealth.Behind(c, version).String(); got != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
			if test.without != nil {
				test.want = *test.without
			}
			if got := hosthealth.Behind(c, "").String(); got != test.want {
				t.Errorf("of any version: %q, not %q", got, test.want)
			}
		})
	}
}

// TestOf: the phase follows from the KubexmConfig, and a host that has recovered is not failed for what was.
func TestOf(t *testing.T) {
	const version = "v1.36.3"
	converge := func(c *bootstrapv1.KubexmConfig) *bootstrapv1.OperationStatus {
		return c.Status.OperationFor(bootstrapv1.ConvergeOperation)
	}
	for name, test := range map[string]struct {
		change func(*bootstrapv1.KubexmConfig)
		want   hosthealth.Phase
		reason string
	}{
		"healthy":                 {func(*bootstrapv1.KubexmConfig) {}, hosthealth.Healthy, ""},
		"recovered by itself":     {func(c *bootstrapv1.KubexmConfig) { converge(c).Failures = ptr.To[int32](2) }, hosthealth.Healthy, ""},
		"it has an older version": {func(c *bootstrapv1.KubexmConfig) { c.Status.KubernetesVersion = "v1.35.4" }, hosthealth.Updating, hosthealth.OutdatedReason},
		"and has failed to come to it": {func(c *bootstrapv1.KubexmConfig) {
			c.Status.KubernetesVersion, converge(c).Outcome = "v1.35.4", bootstrapv1.RunFailed
		}, hosthealth.Failed, hosthealth.OutdatedReason},
		"and tries again": {func(c *bootstrapv1.KubexmConfig) {
			c.Status.KubernetesVersion, converge(c).Failures = "v1.35.4", ptr.To[int32](1)
		}, hosthealth.Retrying, hosthealth.OutdatedReason},
		"its Node is not ready": {func(c *bootstrapv1.KubexmConfig) {
			c.Status.Conditions[1].Status, c.Status.Conditions[1].Reason = metav1.ConditionFalse, bootstrapv1.NodeNotReadyReason
		}, hosthealth.NotReady, bootstrapv1.NodeNotReadyReason},
		"its access is closed": {func(c *bootstrapv1.KubexmConfig) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
				Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.AccessClosedReason,
			})
		}, hosthealth.Healthy, ""},
		"and nobody can change it": {func(c *bootstrapv1.KubexmConfig) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
				Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.AccessClosedReason,
			})
			c.Status.KubernetesVersion = "v1.35.4"
		}, hosthealth.Failed, hosthealth.OutdatedReason},
	} {
		t.Run(name, func(t *testing.T) {
			c := &bootstrapv1.KubexmConfig{}
			c.Status.KubernetesVersion = version
			c.Status.Conditions = []metav1.Condition{
				{Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionTrue},
				{Type: bootstrapv1.HostReadyCondition, Status: metav1.ConditionTrue},
			}
			test.change(c)
			got := hosthealth.Of(c, version)
			reason := ""
			if got.Blocker != nil {
				reason = got.Reason
			}
			if got.Phase != test.want || reason != test.reason {
				t.Errorf("it is %s: %s", got.Phase, hosthealth.WithReason(got.Blocker))
			}
		})
	}
	if got := hosthealth.Of(nil, version); got.Phase != hosthealth.Updating || got.Reason != hosthealth.ConfigNotFoundReason {
		t.Errorf("without a KubexmConfig, it is %s", got.Phase)
	}
}

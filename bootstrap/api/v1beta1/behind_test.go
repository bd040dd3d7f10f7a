// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
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
					Type: bootstrapv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.WaitingForApprovalReason,
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
			change: func(c *bootstrapv1.KubexmConfig) { c.Status.LastRun.EndTime = metav1.Time{} },
			want:   "it follows a change at present",
		},
		"its spec was changed since": {
			change: func(c *bootstrapv1.KubexmConfig) { c.Generation++ },
			want:   "it has not taken in the last change of its KubexmConfig yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: bootstrapv1.KubexmConfigStatus{
				Conditions:        []metav1.Condition{{Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionTrue}},
				KubernetesVersion: version, ConvergedGeneration: 2,
				LastRun: bootstrapv1.RunStatus{StartTime: metav1.Unix(1, 0), EndTime: metav1.Unix(2, 0)},
			}}
			test.change(c)
			if got := c.Behind(version); got != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
			if test.without != nil {
				test.want = *test.without
			}
			if got := c.Behind(""); got != test.want {
				t.Errorf("of any version: %q, not %q", got, test.want)
			}
		})
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// TestHostProblem: the reason is the host's own, and what conditions show begins with it.
func TestHostProblem(t *testing.T) {
	machine := &clusterv1.Machine{}
	machine.Spec.Bootstrap.ConfigRef.Name = "cp1"
	for name, tc := range map[string]struct {
		reason string // of HostReachable, which is False; "" if it is not
		exists bool
		want   *decision.Blocker
	}{
		"no KubexmConfig": {want: &decision.Blocker{Reason: hosthealth.ConfigNotFoundReason, Message: "its KubexmConfig does not exist"}},
		"none":            {exists: true},
		"out of reach": {
			exists: true, reason: bootstrapv1.UnreachableReason,
			want: &decision.Blocker{Reason: bootstrapv1.UnreachableReason, Message: "Unreachable: no route to 100%"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &ControlPlane{}
			if tc.exists {
				c.Configs = []bootstrapv1.KubexmConfig{{ObjectMeta: metav1.ObjectMeta{Name: "cp1"}}}
			}
			if tc.reason != "" {
				conditions.Set(&c.Configs[0], metav1.Condition{
					Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: tc.reason, Message: "no route to 100%",
				})
			}
			if diff := cmp.Diff(tc.want, c.HostProblem(machine)); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
		})
	}
}

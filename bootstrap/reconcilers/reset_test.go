// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestNotReset: no deletion waits for a host for ever, and a host is given up no sooner than is declared.
func TestNotReset(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	begun := func(s *scope, ago time.Duration, reason string) {
		conditions.Set(s.config, metav1.Condition{
			Type: bootstrapv1.HostResetCondition, Status: metav1.ConditionFalse, Reason: reason, Message: "what is for people, and the next attempt",
			LastTransitionTime: metav1.NewTime(now.Add(-ago)),
		})
		if reason == bootstrapv1.ResetFailedReason {
			s.config.Status.OperationFor(bootstrapv1.ResetOperation).Message = "the disk is full"
		}
	}
	unreachable := func(s *scope) {
		setFalse(s.config, bootstrapv1.HostReachableCondition, bootstrapv1.UnreachableReason, "what is for people")
		s.config.Status.OperationFor(bootstrapv1.ResetOperation).Message = "no route to host"
	}
	for name, tc := range map[string]struct {
		cluster, node spec.Reset
		change        func(*scope)
		want          string // how it begins; "" is that the host is to be reset
	}{
		"it has not begun":               {},
		"it has failed a while ago":      {change: func(s *scope) { begun(s, 9*time.Minute, bootstrapv1.ResetFailedReason) }},
		"by default, it has ten minutes": {change: func(s *scope) { begun(s, 10*time.Minute, bootstrapv1.ResetFailedReason) }, want: "the host was released without a reset after 10m0s (reset.timeoutSeconds): the disk is full"},
		"also while it goes on":          {change: func(s *scope) { begun(s, 10*time.Minute, bootstrapv1.ResettingReason) }, want: "the host was released without a reset after 10m0s (reset.timeoutSeconds): it has not ended yet"},
		"the cluster gives it more": {
			cluster: spec.Reset{TimeoutSeconds: ptr.To[int32](3600)}, change: func(s *scope) {
				begun(s, 10*time.Minute, bootstrapv1.ResetFailedReason)
			},
		},
		"the host's own counts first": {
			cluster: spec.Reset{TimeoutSeconds: ptr.To[int32](3600)}, node: spec.Reset{TimeoutSeconds: ptr.To[int32](60)},
			change: func(s *scope) { begun(s, time.Minute, bootstrapv1.ResetFailedReason) }, want: "the host was released without a reset after 1m0s",
		},
		"never":                     {cluster: spec.Reset{Policy: spec.ResetNever}, want: "the host was not reset, as reset.policy says"},
		"never, but for this host":  {cluster: spec.Reset{Policy: spec.ResetNever}, node: spec.Reset{Policy: spec.ResetAlways}},
		"one that may not be there": {node: spec.Reset{Policy: spec.ResetWhenReachable}, change: unreachable},
		"one that does not answer": {
			node:   spec.Reset{Policy: spec.ResetWhenReachable},
			change: func(s *scope) { begun(s, time.Second, bootstrapv1.ResetFailedReason); unreachable(s) },
			want:   "the host does not answer, and was released without a reset, as reset.policy says (WhenReachable): no route to host",
		},
		"one that answers and cannot be reset": {
			node: spec.Reset{Policy: spec.ResetWhenReachable}, change: func(s *scope) {
				begun(s, time.Second, bootstrapv1.ResetFailedReason)
			},
		},
		"somebody says so": {change: func(s *scope) {
			s.machine.Annotations = map[string]string{bootstrapv1.SkipHostResetAnnotation: ""}
		}, want: "the host was released without a reset, as the annotation"},
		"there is none": {change: func(s *scope) {
			s.host, s.waiting = nil, decision.Block(bootstrapv1.WaitingForHostReason, "the KubexmHost is gone")
		}, want: "there is no host to reset: the KubexmHost is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{
				config: &bootstrapv1.KubexmConfig{}, machine: &clusterv1.Machine{},
				clusterConfig: &bootstrapv1.KubexmClusterConfig{}, host: &infra.Host{Host: spec.Host{Name: "w1"}},
			}
			s.clusterConfig.Spec.Cluster.Reset, s.config.Spec.Reset = tc.cluster, tc.node
			if tc.change != nil {
				tc.change(s)
			}
			got := s.notReset(now)
			if (got == nil) != (tc.want == "") || !strings.HasPrefix(got.String(), tc.want) {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
			if got != nil && got.Reason != bootstrapv1.HostResetSkippedReason {
				t.Errorf("the reason is %s", got.Reason)
			}
		})
	}
}

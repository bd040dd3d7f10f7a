// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package remediation_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/remediation"
)

// TestNext: each stage is asked for once and has its time; what is off, or cannot be begun, is left out.
func TestNext(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 5e8, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	mute := decision.Block("Unreachable", "its host does not answer")
	// A host that was left alone until then, and has done what it was asked for at a time.
	leftAlone := func(kind string, until time.Duration, done bootstrapv1.OperationType, asked time.Duration) *bootstrapv1.KubexmConfig {
		c := &bootstrapv1.KubexmConfig{}
		ended, did := metav1.NewTime(ago(until)), metav1.NewTime(ago(asked))
		c.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, LastTransitionTime: ended}}
		c.Status.SetOperation(bootstrapv1.OperationStatus{Type: done, RequestTime: did, EndTime: did})
		return c
	}
	maintained := leftAlone(bootstrapv1.InMaintenanceCondition, time.Minute, bootstrapv1.RebootOperation, time.Hour)
	unpaused := leftAlone(clusterv1.PausedCondition, time.Minute, bootstrapv1.ConvergeOperation, time.Hour)
	for name, tc := range map[string]struct {
		converge, reboot remediation.Attempt
		want             *remediation.Stage
		ask              bool
		after            time.Duration
		says             string
	}{
		"nothing was tried": {remediation.Attempt{}, remediation.Attempt{}, remediation.Converge, true, 5*time.Minute - 5e8, "its host is converged again"},
		"it has time": {remediation.Attempt{Asked: ago(time.Minute)},
			remediation.Attempt{}, remediation.Converge, false, 4 * time.Minute, "has 5m0s from"},
		"that did not help": {remediation.Attempt{Asked: ago(5 * time.Minute)},
			remediation.Attempt{}, remediation.Reboot, true, 5*time.Minute - 5e8, "its host reboots"},
		"converging is off": {remediation.Attempt{Timeout: -1}, remediation.Attempt{},
			remediation.Reboot, true, 5*time.Minute - 5e8, "its host reboots"},
		"it cannot reboot": {remediation.Attempt{Asked: ago(time.Hour)}, remediation.Attempt{Blocker: mute}, nil, false, 0, "has not helped; its host does not answer"},
		"but reboots if it was asked": {remediation.Attempt{Asked: ago(time.Hour)},
			remediation.Attempt{Blocker: mute, Asked: ago(time.Minute)}, remediation.Reboot, false, 4 * time.Minute, ""},
		"neither has helped": {remediation.Attempt{Asked: ago(time.Hour)}, remediation.Attempt{Asked: ago(time.Hour)}, nil, false, 0, "rebooting its host has not helped"},
		"it has its time after a maintenance": {remediation.Attempt{Timeout: -1}, remediation.Attempt{Asked: ago(time.Hour), Config: maintained},
			remediation.Reboot, false, 4 * time.Minute, "has 5m0s from 2026-11-24T11:59:00Z"},
		"and after a pause": {remediation.Attempt{Asked: ago(time.Hour), Config: unpaused}, remediation.Attempt{},
			remediation.Converge, false, 4 * time.Minute, "has 5m0s from 2026-11-24T11:59:00Z"},
		"what was cut is asked for again": {remediation.Attempt{Timeout: -1}, remediation.Attempt{Asked: ago(time.Hour), Config: unpaused},
			remediation.Reboot, true, 5*time.Minute - 5e8, "its host reboots"},
		"unless it cannot be any more": {remediation.Attempt{Timeout: -1}, remediation.Attempt{Asked: ago(time.Hour), Config: unpaused, Blocker: mute},
			nil, false, 0, "its host does not answer"},
		"or may be done still": {remediation.Attempt{Timeout: -1}, remediation.Attempt{Asked: ago(5 * time.Minute), Config: unpaused},
			remediation.Reboot, false, 4 * time.Minute, ""},
		"a maintenance before it is none": {remediation.Attempt{Timeout: -1}, remediation.Attempt{Asked: ago(30 * time.Second), Config: maintained},
			remediation.Reboot, false, 4*time.Minute + 30*time.Second, ""},
		"neither is wanted": {remediation.Attempt{Timeout: -1}, remediation.Attempt{Timeout: -1}, nil, false, 0, "is off (spec.c); rebooting its host is off (spec.r)"},
	} {
		t.Run(name, func(t *testing.T) {
			attempt := func(a remediation.Attempt, stage *remediation.Stage, field string) remediation.Attempt {
				a.Stage, a.Field = stage, field
				if a.Timeout++; a.Timeout == 1 {
					a.Timeout = 5 * time.Minute
				}
				return a
			}
			got := remediation.Next(now, attempt(tc.converge, remediation.Converge, "spec.c"), attempt(tc.reboot, remediation.Reboot, "spec.r"))
			var stage *remediation.Stage
			if got.Attempt != nil {
				stage = got.Attempt.Stage
			}
			if stage != tc.want || got.Ask != tc.ask || got.After != tc.after || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

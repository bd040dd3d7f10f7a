// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosthealth

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
)

// LeftAlone is that nobody is to touch a host now: it is in maintenance, by the words of who says so, or its KubexmConfig is paused; nil if
// somebody may. What is wrong with the host meanwhile is expected.
func LeftAlone(c *bootstrapv1.KubexmConfig) *decision.Blocker {
	if c == nil {
		return nil
	}
	// HostReachable says so, too, unless the infrastructure cannot be asked for a while.
	for _, kind := range []string{bootstrapv1.InMaintenanceCondition, bootstrapv1.HostReachableCondition} {
		said := meta.FindStatusCondition(c.Status.Conditions, kind)
		if said != nil && said.Reason == bootstrapv1.HostInMaintenanceReason {
			return decision.Block(said.Reason, "%s", said.Message)
		}
	}
	said := meta.FindStatusCondition(c.Status.Conditions, clusterv1.PausedCondition)
	if said != nil && said.Status == metav1.ConditionTrue {
		return decision.Block(said.Reason, "its KubexmConfig is paused: %s", said.Message)
	}
	return nil
}

// LeftAloneUntil is until when a host was last left alone, the zero time if it never was: what somebody has asked for before has its time
// from then. A move loses when maintenances have ended, and is a pause itself.
func LeftAloneUntil(c *bootstrapv1.KubexmConfig) time.Time {
	until, unpaused := MaintainedUntil(c), lastFalse(c, clusterv1.PausedCondition)
	if unpaused.After(until) {
		return unpaused
	}
	return until
}

// MaintainedUntil is when a host's last maintenance has ended, the zero time if it is in one, or that is not known.
func MaintainedUntil(c *bootstrapv1.KubexmConfig) time.Time {
	return lastFalse(c, bootstrapv1.InMaintenanceCondition)
}

// lastFalse is since when a condition is False, the zero time if it is not.
func lastFalse(c *bootstrapv1.KubexmConfig, kind string) time.Time {
	if c == nil {
		return time.Time{}
	}
	said := meta.FindStatusCondition(c.Status.Conditions, kind)
	if said == nil || said.Status != metav1.ConditionFalse {
		return time.Time{}
	}
	return said.LastTransitionTime.Time
}

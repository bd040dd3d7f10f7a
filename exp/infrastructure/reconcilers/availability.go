// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// unreachableFor is how long a host that could not be used is not handed out, unless a heartbeat says so again. Where there are no
// heartbeats, nobody dials a host that no Machine has, and after this time the next Machine finds out.
const unreachableFor = 10 * time.Minute

// state is whether a host may be claimed.
type state struct {
	available bool
	// reason and message are for the condition Available.
	reason, message string
	// refusal is why not, for the condition of a machine that is refused the host.
	refusal string
	// until is when that ends by itself, 0 if it does not.
	until time.Duration
}

// availability observes one host.
func availability(host *infrav1.KubexmHost, now time.Time) state {
	reachable := conditions.Get(host, infrav1.ReachableCondition)
	switch {
	case host.IsInMaintenance():
		return state{
			reason: infrav1.MaintenanceReason,
			message: fmt.Sprintf("the host is in maintenance: %s\nRemedy: end it when that is done: "+
				"kubectl patch kubexmhost -n %s %s --type=json -p='[{\"op\":\"remove\",\"path\":\"/spec/maintenance\"}]'",
				host.Spec.Maintenance.Message, host.Namespace, host.Name),
			refusal: "in maintenance",
		}
	case host.Spec.ClaimRef != (infrav1.MachineReference{}):
		return state{
			reason:  infrav1.ClaimedReason,
			message: fmt.Sprintf("the %s %s of the Cluster %s has claimed this host", host.Spec.ClaimRef.KindOrDefault(), host.Spec.ClaimRef.Name, host.Spec.ClaimRef.ClusterName),
			refusal: "taken by other Machines",
		}
	case !host.DeletionTimestamp.IsZero():
		return state{reason: infrav1.DeletingReason, message: "the KubexmHost is being deleted", refusal: "being deleted"}
	case host.IsQuarantined():
		return state{
			reason: infrav1.QuarantinedReason,
			message: fmt.Sprintf("%s: %s\nRemedy: see what is left on the host and clean it, by kubexm reset host or by installing it anew. "+
				"Then end the quarantine: kubectl patch kubexmhost -n %s %s --type=json -p='[{\"op\":\"remove\",\"path\":\"/spec/quarantine\"}]'",
				host.Spec.Quarantine.Reason, cmp.Or(host.Spec.Quarantine.Message, "the host is in quarantine"), host.Namespace, host.Name),
			refusal: "in quarantine",
		}
	case wasLet(host):
		return state{reason: infrav1.QuarantinedReason, message: "the claim was removed, and the host was not reset", refusal: "in quarantine"}
	case annotations.HasPaused(host):
		return state{reason: infrav1.HostPausedReason, message: "the KubexmHost is annotated as paused", refusal: "paused"}
	case reachable != nil && reachable.Status == metav1.ConditionFalse:
		last := reachable.LastTransitionTime.Time
		if beat := host.Status.LastHeartbeatTime.Time; beat.After(last) {
			last = beat
		}
		if wait := unreachableFor - now.Sub(last); wait > 0 {
			return state{
				reason: infrav1.UnreachableReason,
				message: fmt.Sprintf("%s\nThe host may be claimed again when it has answered, or %s after it was last dialled.",
					reachable.Message, unreachableFor),
				refusal: unreachable(reachable.Reason),
				until:   wait,
			}
		}
	}
	return state{available: true, reason: infrav1.FreeReason}
}

// unreachable is what is said of a host that could not be used, by why not.
func unreachable(reason string) string {
	if reason == infrav1.UnreachableReason {
		return "unreachable"
	}
	return "unreachable: " + reason
}

// wasLet reports whether somebody has removed the claim of a host that was in use, which Release of KubexmHost does not do without a
// quarantine.
func wasLet(host *infrav1.KubexmHost) bool {
	return host.Spec.ClaimRef == (infrav1.MachineReference{}) && !host.IsQuarantined() &&
		conditions.GetReason(host, infrav1.CleanCondition) == infrav1.InUseReason
}

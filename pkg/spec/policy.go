// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"time"

	"k8s.io/utils/ptr"
)

// DriftPolicy is what becomes of what somebody changed on a host.
//
// +kubebuilder:validation:Enum=Repair;Report
type DriftPolicy string

const (
	// DriftRepair has the host made again what it must be, as soon as a difference is found.
	DriftRepair DriftPolicy = "Repair"
	// DriftReport has a difference shown, and left as it is until somebody asks for its repair or declares something else.
	DriftReport DriftPolicy = "Report"
)

// FailurePolicy is what becomes of what a run has changed when a step fails.
//
// +kubebuilder:validation:Enum=Stop;UndoTask;UndoRun
type FailurePolicy string

const (
	// FailureStop leaves what is done. The next run begins there.
	FailureStop FailurePolicy = "Stop"
	// FailureUndoTask restores what the run has changed for the task whose step failed.
	FailureUndoTask FailurePolicy = "UndoTask"
	// FailureUndoRun restores all that the run has changed.
	FailureUndoRun FailurePolicy = "UndoRun"
)

// ResetPolicy is whether a host is reset when it leaves its cluster.
//
// +kubebuilder:validation:Enum=Always;WhenReachable;Never
type ResetPolicy string

const (
	// ResetAlways has it tried until it succeeds, or the time for it has passed.
	ResetAlways ResetPolicy = "Always"
	// ResetWhenReachable is as ResetAlways, but for a host that does not answer, which is given up at once.
	ResetWhenReachable ResetPolicy = "WhenReachable"
	// ResetNever has the host left as it is.
	ResetNever ResetPolicy = "Never"
)

// Reset is what becomes of a host when its Machine, or its KubexmConfig where it has no Machine, is deleted. A host that is not
// reset is left as it is, and a KubexmHost goes into quarantine; the deletion goes on.
//
// +kubebuilder:validation:MinProperties=1
type Reset struct {
	// policy is Always, where it is tried to reset the host until the time for that has passed; WhenReachable, where that is
	// not tried for longer with a host that does not answer; or Never. If unset, what suits the infrastructure: Always for KubexmHosts.
	// +optional
	Policy ResetPolicy `json:"policy,omitempty"`

	// timeoutSeconds is how long it is tried, from when nothing else keeps the host any more. If unset, 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// defaultResetTimeout is how long it is tried to reset a host, where nothing is said.
const defaultResetTimeout = 10 * time.Minute

// Timeout is timeoutSeconds, or what it is if unset.
func (r *Reset) Timeout() time.Duration {
	return time.Duration(ptr.Deref(r.TimeoutSeconds, int32(defaultResetTimeout/time.Second))) * time.Second
}

// ResetOf is what becomes of a host that leaves: what the host's own part says, field by field, else what the cluster says. c may be
// nil.
func ResetOf(c *Cluster, n *Node) Reset {
	if c == nil {
		c = &Cluster{}
	}
	r := Reset{Policy: cmp.Or(n.Reset.Policy, c.Reset.Policy, ResetAlways), TimeoutSeconds: n.Reset.TimeoutSeconds}
	if r.TimeoutSeconds == nil {
		r.TimeoutSeconds = c.Reset.TimeoutSeconds
	}
	return r
}

// DriftPolicyOf is what becomes of a difference that is found on a host.
func DriftPolicyOf(c *Cluster, n *Node) DriftPolicy {
	return cmp.Or(n.DriftPolicy, c.DriftPolicy, DriftRepair)
}

// FailurePolicyOf is what becomes of what a run on a host has changed when it fails.
func FailurePolicyOf(c *Cluster, n *Node) FailurePolicy {
	return cmp.Or(n.OnFailure, c.OnFailure, FailureStop)
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Annotations of a MachineDeployment.
const (
	// VersionAnnotation is the version of Kubernetes that its Machines are brought to on their hosts, such as v1.36.3. It is
	// taken off when they have it. Taking it off earlier ends the rollout after the hosts that have begun.
	VersionAnnotation = "controlplane.cluster.x-k8s.io/in-place-version"
	// CanaryAnnotation names the host that goes first, alone: by its Node, its KubexmHost or its Machine.
	CanaryAnnotation = "controlplane.cluster.x-k8s.io/in-place-canary"
)

// UpgradingCondition of a MachineDeployment is whether its Machines are being brought to another version on their hosts. A
// MachineDeployment that never was has no such condition.
const UpgradingCondition = "InPlaceUpgrading"

// Reasons of UpgradingCondition. It is True but for UpgradedReason, CanceledReason and InvalidReason.
const (
	// UpgradingReason means that hosts are on their way; the message says which.
	UpgradingReason = "Upgrading"
	// WaitingForControlPlaneReason means that the control plane is older than what is asked for.
	WaitingForControlPlaneReason = "WaitingForControlPlane"
	// WaitingForMachinesReason means that Machines that are not available, for whatever reason, take up the window.
	WaitingForMachinesReason = "WaitingForMachines"
	// WaitingForRolloutReason means that Cluster API replaces Machines, or makes or deletes some.
	WaitingForRolloutReason = "WaitingForRollout"
	// HostFailedReason means that a host did not become what it must be. No other begins until it has.
	HostFailedReason = "HostFailed"
	// CompletingReason means that all Machines have the version, and the MachineDeployment's template is updated to it.
	CompletingReason = "Completing"
	// UpgradedReason means that all is done.
	UpgradedReason = "Upgraded"
	// CanceledReason means that the annotation was removed before all was done.
	CanceledReason = "Canceled"
	// InvalidReason means that what is asked for is not possible; the message says why, and what to do.
	InvalidReason = "Invalid"
)

// pausePrefix begins the value of the annotation by which a MachineDeployment is paused here, and nowhere else. The version
// that it is given follows.
const pausePrefix = "kubexm in place "

// pausedFor is the version for which the MachineDeployment was paused here, "" if it was not.
func pausedFor(md *clusterv1.MachineDeployment) string {
	version, ours := strings.CutPrefix(md.Annotations[clusterv1.PausedAnnotation], pausePrefix)
	if !ours {
		return ""
	}
	return version
}

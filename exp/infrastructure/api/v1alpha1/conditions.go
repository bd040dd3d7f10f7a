// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

const (
	// HostFinalizer keeps a KubexmHost while a Machine has it.
	HostFinalizer = "kubexmhost.infrastructure.cluster.x-k8s.io"
	// MachineFinalizer keeps a KubexmMachine until its host is released.
	MachineFinalizer = "kubexmmachine.infrastructure.cluster.x-k8s.io"
	// ClusterFinalizer keeps a KubexmCluster until its KubexmMachines are gone.
	ClusterFinalizer = "kubexmcluster.infrastructure.cluster.x-k8s.io"
)

// Conditions of a KubexmHost.
const (
	// AvailableCondition is whether a Machine may have the host.
	AvailableCondition = clusterv1.AvailableCondition

	// ReachableCondition is whether the host answered when it was last dialled, showed its pinned key and accepted the login.
	// It is written by the bootstrap provider, which dials hosts for those who have them, and those that nobody has at an interval. A host
	// that was never dialled does not have it, and may be claimed.
	ReachableCondition = "Reachable"

	// CleanCondition is whether nothing of ours is on the host. It is set to False by the claim, before anybody may touch
	// the host, and to True by the bootstrap provider alone, when it has reset the host. A host that was never claimed
	// does not have it. When a claim ends and it is not True, the host goes into quarantine (spec.quarantine).
	CleanCondition = "Clean"

	// UniqueCondition is whether no other KubexmHost, of whatever namespace that the manager sees, is the same machine: none has
	// its machine-id or, in its namespace or where somebody has logged in to it, its address. Of such hosts one at most may be
	// claimed. Where it is True with the reason SharedHostKey, other machines have the host's key.
	UniqueCondition = "Unique"
)

// Reasons of a host's Unique.
const (
	// UniqueReason means that no other KubexmHost has the host's address, machine-id or host key.
	UniqueReason = "Unique"
	// SameMachineReason, of Available too, means that the message's other KubexmHosts are the same machine.
	SameMachineReason = "SameMachine"
	// SharedHostKeyReason means that the message's other KubexmHosts have the same host key; Unique is True. The key does not tell
	// the hosts apart when their addresses move.
	SharedHostKeyReason = "SharedHostKey"
)

// Reasons of a host's Available.
const (
	// FreeReason means that the next fitting Machine gets the host.
	FreeReason = "Free"
	// ClaimedReason means that a Machine has the host.
	ClaimedReason = "Claimed"
	// MaintenanceReason means that the host has a spec.maintenance: nobody is to touch it.
	MaintenanceReason = "Maintenance"
	// QuarantinedReason means that the host has a spec.quarantine: it was released without having been reset, as a rule.
	QuarantinedReason = "Quarantined"
	// UnreachableReason means that the host did not answer when it was last dialled, or could not be entered; see Reachable.
	UnreachableReason = "Unreachable"
	// HostPausedReason means that the KubexmHost has the annotation cluster.x-k8s.io/paused.
	HostPausedReason = clusterv1.PausedReason
	// DeletingReason means that the KubexmHost is being deleted.
	DeletingReason = clusterv1.DeletingReason
)

// Reasons of a host's Reachable that are True; those that are False are the bootstrap provider's own.
const (
	// ReachedReason means that the host answered.
	ReachedReason = "Reached"
)

// Reasons of a host's Clean.
const (
	// ResetReason means that the host was reset; Clean is True.
	ResetReason = "Reset"
	// InUseReason means that a Machine has, or had, the host; Clean is False.
	InUseReason = "InUse"
	// NotResetReason means that the host was released without having been reset; Clean is False.
	NotResetReason = "NotReset"
	// ResetFailedReason means that the host could not be reset; Clean is False, and the message says why and what to do.
	ResetFailedReason = "ResetFailed"
)

// Conditions of a KubexmMachine and a KubexmCluster.
const (
	// ReadyCondition sums up the others.
	ReadyCondition = clusterv1.ReadyCondition

	// HostClaimedCondition is whether a KubexmMachine has a host.
	HostClaimedCondition = "HostClaimed"

	// EndpointAvailableCondition is whether it is known where a KubexmCluster's API server will be reached.
	EndpointAvailableCondition = "EndpointAvailable"

	// DeletingCondition is whether the object is being deleted, and what that waits for.
	DeletingCondition = clusterv1.DeletingCondition
)

// Reasons of HostClaimed.
const (
	// HostClaimedReason means that the Machine has the host that the message names.
	HostClaimedReason = "Claimed"
	// WaitingForOwnerReason means that no Machine owns the KubexmMachine, or no Cluster the KubexmCluster, yet.
	WaitingForOwnerReason = "WaitingForOwner"
	// WaitingForClusterReason means that the Cluster's infrastructure is not provisioned yet.
	WaitingForClusterReason = "WaitingForClusterInfrastructure"
	// NoHostReason means that no host is free; the message counts why each of the others is not.
	NoHostReason = "NoHostAvailable"
	// HostLostReason means that the host that the Machine had is gone, or another Machine has it. It needs a new Machine.
	HostLostReason = "HostLost"
)

// Reasons of Ready.
const (
	// ReadyReason means that nothing is missing.
	ReadyReason = clusterv1.ReadyReason
	// WaitingForBootstrapDataReason means that the Machine has no bootstrap data yet.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
)

// Reasons of EndpointAvailable.
const (
	// EndpointAvailableReason means that the endpoint is known.
	EndpointAvailableReason = clusterv1.AvailableReason
	// EndpointConflictReason means that Cluster and KubexmCluster name different endpoints; the Cluster's counts.
	EndpointConflictReason = "EndpointConflict"
	// WaitingForHostReason means that the endpoint is that of the first control plane host, and there is none yet.
	WaitingForHostReason = "WaitingForControlPlaneHost"
)

// Reasons of Deleting.
const (
	// NotDeletingReason means that the object is not being deleted.
	NotDeletingReason = clusterv1.NotDeletingReason
	// WaitingForMachinesReason means that KubexmMachines of the cluster still exist.
	WaitingForMachinesReason = "WaitingForMachines"
	// WaitingForReleaseReason means that the Machine still needs the host, for its reset at least; the message says more.
	WaitingForReleaseReason = "WaitingForRelease"
)

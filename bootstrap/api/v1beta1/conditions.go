// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

const (
	// ConfigFinalizer keeps a KubexmConfig until its Secret is gone and no run of it goes on.
	ConfigFinalizer = "kubexmconfig.bootstrap.cluster.x-k8s.io"

	// HostResetHook is the annotation on a Machine that keeps its infrastructure until the host is reset. A finalizer of
	// the KubexmConfig would be too late: Cluster API deletes the infrastructure first.
	HostResetHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/kubexm-host-reset"
)

// Conditions of a KubexmConfig, in the order in which they become True.
const (
	// ReadyCondition sums up the others. The Machine shows it as BootstrapConfigReady.
	ReadyCondition = clusterv1.ReadyCondition

	// DataSecretAvailableCondition is whether the Secret with the bootstrap data exists.
	DataSecretAvailableCondition = "DataSecretAvailable"

	// HostReachableCondition is whether the host shows the pinned key, lets us in, and lets us become root.
	HostReachableCondition = "HostReachable"

	// PreflightPassedCondition is whether the host can become what it must be. Its message has every problem with its remedy.
	PreflightPassedCondition = "PreflightPassed"

	// HostConvergedCondition is whether the host is what it must be. While it is False, its message names the host, the
	// task, the step, the cause and the remedy.
	HostConvergedCondition = "HostConverged"

	// NodeJoinedCondition is whether the host's Node is registered and ready.
	NodeJoinedCondition = "NodeJoined"

	// HostResetCondition is only there when the Machine is deleted: whether the host is again what it was before.
	HostResetCondition = "HostReset"
)

// Reasons of DataSecretAvailable.
const (
	// DataSecretAvailableReason means that the Secret exists.
	DataSecretAvailableReason = clusterv1.AvailableReason
	// DataSecretNotAvailableReason means that the Secret could not be written; the message says why.
	DataSecretNotAvailableReason = clusterv1.NotAvailableReason
)

// Reasons of HostReachable.
const (
	// HostReachableReason means that the host was reached and trusted.
	HostReachableReason = "Reachable"
	// WaitingForHostReason means that the infrastructure has not said yet which host it is and where.
	WaitingForHostReason = "WaitingForHost"
	// UnreachableReason means that nothing answers at the host's address.
	UnreachableReason = "Unreachable"
	// HostKeyMismatchReason means that the host showed another key than the pinned one. Nothing was sent to it.
	HostKeyMismatchReason = "HostKeyMismatch"
	// LoginFailedReason means that the host refused the user or their credentials.
	LoginFailedReason = "LoginFailed"
	// SudoFailedReason means that the user cannot become root.
	SudoFailedReason = "SudoFailed"
	// CredentialsNotAvailableReason means that the Secret with the credentials is missing or has none of the keys.
	CredentialsNotAvailableReason = "CredentialsNotAvailable"
	// HostLockedReason means that another writer holds the host's lock; the message names it.
	HostLockedReason = "Locked"
)

// Reasons of PreflightPassed.
const (
	// PreflightPassedReason means that nothing stands in the way; warnings are in the message.
	PreflightPassedReason = "Passed"
	// PreflightFailedReason means that nothing was changed on the host; every problem is in the message.
	PreflightFailedReason = "Failed"
)

// Reasons of HostConverged.
const (
	// HostConvergedReason means that every step is as planned.
	HostConvergedReason = "Converged"
	// ConvergingReason means that a run goes on; the message says how far it is.
	ConvergingReason = "Converging"
	// StepFailedReason means that a step failed.
	StepFailedReason = "StepFailed"
	// PlanFailedReason means that no plan could be made; the message has the field's path.
	PlanFailedReason = "PlanFailed"
	// DriftedReason means that a converged host was found changed; the message says what differs.
	DriftedReason = "Drifted"
	// WaitingForClusterReason means that something of the cluster that the host needs is not there yet.
	WaitingForClusterReason = "WaitingForCluster"
)

// Reasons of NodeJoined.
const (
	// NodeJoinedReason means that the Node is registered and ready.
	NodeJoinedReason = "Joined"
	// WaitingForNodeReason means that the kubelet has not registered the Node yet.
	WaitingForNodeReason = "WaitingForNode"
	// NodeNotReadyReason means that the Node is registered and not ready; the message is the Node's own.
	NodeNotReadyReason = "NodeNotReady"
)

// Reasons of HostReset.
const (
	// HostResetReason means that the host is what it was before.
	HostResetReason = "Reset"
	// ResettingReason means that the reset goes on.
	ResettingReason = "Resetting"
	// ResetFailedReason means that the host could not be reset; the message says which step failed and what to do.
	ResetFailedReason = "ResetFailed"
)

// Reasons that more than one condition has.
const (
	// NotStartedReason means that the conditions before this one are not True yet.
	NotStartedReason = "NotStarted"
	// InternalErrorReason means an error that is not the host's or the user's; the manager's log has it.
	InternalErrorReason = clusterv1.InternalErrorReason
)

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

	// RemediationFinalizer keeps a KubexmRemediation until its Machine no longer says that it is being remediated.
	RemediationFinalizer = "kubexmremediation.bootstrap.cluster.x-k8s.io"
)

// SkipHostResetAnnotation on a Machine (or a KubexmConfig without one) that is being deleted skips the reset of its host,
// for a host that is broken or gone. A KubexmHost goes into quarantine then. Its value does not matter.
const SkipHostResetAnnotation = "bootstrap.cluster.x-k8s.io/skip-host-reset"

// ConvergeAnnotation on a KubexmConfig has its host brought to what it must be, at once and however lately that was done, each time
// that its value is another. The value is a time, such as 2026-11-21T12:00:00Z, or anything else that has not been there before.
const ConvergeAnnotation = "bootstrap.cluster.x-k8s.io/converge"

// AskEtcdAnnotation on a KubexmConfig has the etcd on its host asked for its members and alarms at once, unless that was done since the
// time that is its value, such as 2026-11-21T12:00:00Z. What it says is in status.etcd.
const AskEtcdAnnotation = "bootstrap.cluster.x-k8s.io/ask-etcd"

// SaveEtcdAnnotation on the KubexmConfig of a control plane host has a snapshot of etcd saved on that host, once for each time that is its
// value, such as 2026-11-21T12:00:00Z. What came of it is SaveEtcd in status.operations.
const SaveEtcdAnnotation = "bootstrap.cluster.x-k8s.io/save-etcd"

// RecoverCertificatesAnnotation on the KubexmConfig of a control plane host has key pairs of the cluster read from that host, and those
// Secrets written that are missing, once for each time in its value: a time, a space, and the fingerprints that the pairs must have, as
// package pki writes them, such as "2026-11-21T12:00:00Z ca=sha256:…,sa=sha256:…". What came of it is
// RecoverCertificates in status.operations.
const RecoverCertificatesAnnotation = "bootstrap.cluster.x-k8s.io/recover-certificates"

// ApprovedDisruptionAnnotation on a KubexmConfig is the digest that its condition DisruptionAllowed shows: what is listed there may be
// done, and nothing else. It is taken off when that is done.
const ApprovedDisruptionAnnotation = "bootstrap.cluster.x-k8s.io/approved-disruption"

// ForHostsLabel on a Secret says that hosts get to see it, and how: it is set by those who may change the Secret. Without it, a Secret
// is not read for a host, no matter who names it, save one of type kubernetes.io/ssh-auth without a password, to log in with.
const ForHostsLabel = "bootstrap.cluster.x-k8s.io/for-hosts"

// Values of ForHostsLabel.
const (
	// ForHostsCredentials is a Secret that credentialsRef may name: hosts that ask for a password are given it.
	ForHostsCredentials = "credentials"
	// ForHostsContent is a Secret whose values become files on hosts, or are what an external etcd is reached with.
	ForHostsContent = "content"
)

// AuthorityAnnotation on a KubexmConfig is the fingerprint of the certificate authority that its host is made for: sha256: and 64
// hexadecimal digits of the public key. It is written before the host is touched, and says whose the host is when the Secret with
// the authority is gone.
const AuthorityAnnotation = "bootstrap.cluster.x-k8s.io/authority"

// ClusterResetAnnotation on a KubexmConfig is what its KubexmClusterConfig says in spec.cluster.reset, as JSON, such as
// {"policy":"Never","timeoutSeconds":900}; there is none where that says nothing. The manager writes it while there is a
// KubexmClusterConfig, and keeps to it when there is none any more: a deletion may take that before the hosts. One that cannot be read
// means Never.
const ClusterResetAnnotation = "bootstrap.cluster.x-k8s.io/cluster-reset"

// ConvergedToAnnotation on a KubexmConfig whose driftPolicy is Report is the digest of what its host was last brought to, as sha256: and 64
// hexadecimal digits. The manager writes it, and takes it off when a run begins. Where the status was lost, as with clusterctl move, it
// says that what differs on the host is drift, and is not to be repaired. Addresses and the content of Secrets are no part of it.
const ConvergedToAnnotation = "bootstrap.cluster.x-k8s.io/converged-to"

// AdoptHostAnnotation on a KubexmConfig takes its host over from the owner that the value names: the cluster, as
// "namespace/name" or as the host's record has it, or the fingerprint of its authority, as the condition with the reason
// HostOwnedByOther shows them, or "unknown" for a host whose record is missing or cannot be read. What runs there is
// converged, or reset, as if it were the Machine's own. On a host of any other owner it has no effect. It is taken off when
// that is done.
const AdoptHostAnnotation = "bootstrap.cluster.x-k8s.io/adopt-host"

// HostOwnedByOtherReason is a reason of HostConverged and of HostReset. It means that the host is another cluster's, or another host of
// this cluster than is meant, or does not say whose it is: nothing was changed on it. The message says what it is and what to do.
const HostOwnedByOtherReason = "HostOwnedByOther"

// Conditions of a KubexmConfig, in the order in which they become True.
const (
	// ReadyCondition is whether the bootstrap data exists, and what is declared is not refused before its host was ever a Node. The
	// Machine shows it as BootstrapConfigReady. Of a KubexmConfig without a Machine it is whether its host is ready.
	ReadyCondition = clusterv1.ReadyCondition

	// HostReadyCondition sums up what is known of the host: DataSecretAvailable, HostReachable, PreflightPassed, HostConverged and
	// NodeJoined, or, while it is being reset, HostReset.
	HostReadyCondition = "HostReady"

	// DataSecretAvailableCondition is whether the Secret with the bootstrap data exists.
	DataSecretAvailableCondition = "DataSecretAvailable"

	// HostReachableCondition is whether the host shows the pinned key, accepts the login, and sudo works. That its access was closed
	// (AccessClosed) keeps the host from nothing else: HostReady is as if it were reachable.
	HostReachableCondition = "HostReachable"

	// PreflightPassedCondition is whether the host can become what it must be. Its message has every problem with its remedy.
	PreflightPassedCondition = "PreflightPassed"

	// HostConvergedCondition is whether the host is what it must be. While it is False, its message names the host, the
	// task, the step, the cause and the remedy; so it does while it is Unknown because a drift check failed.
	HostConvergedCondition = "HostConverged"

	// NodeJoinedCondition is whether the host's Node is registered and ready, or, where users install the network, registered.
	NodeJoinedCondition = "NodeJoined"

	// DisruptionAllowedCondition is only there, and False, while something waits that would disrupt a host in use. The message lists
	// what would be done. The host works as it did, so nothing else depends on this.
	DisruptionAllowedCondition = "DisruptionAllowed"

	// InMaintenanceCondition is only there once the host was in maintenance, and written by the bootstrap provider: whether nobody is to
	// touch the host now, as the infrastructure says. While it is True, the message says why. That it is False keeps when that has ended:
	// what was asked for before has its time from then. No summary has it.
	InMaintenanceCondition = "InMaintenance"

	// APIServerStoppedCondition is only there when the host leaves an etcd that others keep: whether its API server has ended, so that
	// its etcd member may be removed. False means that it was tried and given up; the message says why. Who finds it missing ends the API
	// server once more.
	APIServerStoppedCondition = "APIServerStopped"

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
	// WaitingForHostReason means that the infrastructure has not said yet which host it is and where. As a reason of HostReset it means
	// that it does not say so now: the host is waited for, as what was changed on it is to be undone.
	WaitingForHostReason = "WaitingForHost"
	// WaitingForBootstrapDataReason means that the infrastructure says where the host may be, and that no host which has run the bootstrap
	// data answers there yet.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
	// EnrollmentFailedReason means that the host was reached, and that no key of its own could be made on it.
	EnrollmentFailedReason = "EnrollmentFailed"
	// HostInMaintenanceReason means that the infrastructure says that nobody is to touch the host now; the message says why.
	HostInMaintenanceReason = "HostInMaintenance"
	// UnreachableReason means that nothing answers at the host's address.
	UnreachableReason = "Unreachable"
	// NotAnsweringReason means that the host was reached and does not answer to an observation in time: something hangs there.
	NotAnsweringReason = "NotAnswering"
	// AnswerRefusedReason means that what the host answers is not understood, or more than was asked for.
	AnswerRefusedReason = "AnswerRefused"
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

// MaintenanceEndedReason of InMaintenance means that the host was in maintenance until then, and may be touched since. While it is True,
// the reason is HostInMaintenance.
const MaintenanceEndedReason = "MaintenanceEnded"

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
	// RetriesExhaustedReason means that a host in use was rolled back so often from the same change that it is not tried again. The
	// message says what failed, and what to do.
	RetriesExhaustedReason = "RetriesExhausted"
	// PlanFailedReason means that no plan could be made; the message says what is missing.
	PlanFailedReason = "PlanFailed"
	// InvalidReason means that what is declared cannot be; the message has the field's path.
	InvalidReason = "Invalid"
	// DriftedReason means that a converged host was found changed; the message says what differs.
	DriftedReason = "Drifted"
	// ObservationFailedReason means that the host was observed, and that it is not known of some steps whether they are so: a check did
	// not end in time, or says that it cannot know. Nothing is changed for that, and the host is observed again. As a reason of
	// DisruptionAllowed it means that it is not known for that what a change would disrupt.
	ObservationFailedReason = "ObservationFailed"
	// WaitingForClusterReason means that something of the cluster that the host needs is not there yet.
	WaitingForClusterReason = "WaitingForCluster"
)

// AccessClosedReason of HostReachable means that the access to the host was closed for good, as its accessPolicy says: nobody logs in there
// any more. As a reason of HostConverged it means that the host is to become something else since, which takes another host.
const AccessClosedReason = "AccessClosed"

// NotMemberReason of HostConverged means that the KubexmConfig names a host of etcd or of load balancers that the KubexmClusterConfig
// does not list. Nothing is done with the host.
const NotMemberReason = "NotMember"

// Reasons of APIServerStopped.
const (
	// APIServerStoppedReason means that the API server has ended.
	APIServerStoppedReason = "Stopped"
	// APIServerNotStoppedReason means that it is not known to have ended, and that the others go on without waiting for it.
	APIServerNotStoppedReason = "StopFailed"
	// HostNotManagedReason means that the host is not managed, or does not exist.
	HostNotManagedReason = "HostNotManaged"
)

// Reasons of DisruptionAllowed.
const (
	// WaitingForApprovalReason means that somebody has to agree; the message says how.
	WaitingForApprovalReason = "WaitingForApproval"
	// OutsideMaintenanceWindowReason means that no maintenance window is open; the message says when the next one opens.
	OutsideMaintenanceWindowReason = "OutsideMaintenanceWindow"
	// WaitingForPoolReason means that as many hosts of its pool are disrupted, or not well, as may be; the message says which and why.
	WaitingForPoolReason = "WaitingForPool"
	// PoolStoppedReason means that the change failed on another host of its pool, and begins on no further one; the message says on
	// which, why, and what to do.
	PoolStoppedReason = "PoolStopped"
)

// Reasons of NodeJoined.
const (
	// NodeJoinedReason means that the Node is registered and ready.
	NodeJoinedReason = "Joined"
	// NodeRegisteredReason means that the Node is registered, and that it is Ready once users have installed a network, as the Cluster's
	// network.plugin is None.
	NodeRegisteredReason = "Registered"
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
	// HostResetSkippedReason means that the host was released without a reset; the message says why, and what is left on it.
	HostResetSkippedReason = "HostResetSkipped"
)

// RemediatingCondition of a KubexmRemediation is whether something is done with its Machine; the message says what, and what is waited
// for. The Machine shows what is tried with its host in its condition ExternallyRemediated, which is only there meanwhile.
const RemediatingCondition = clusterv1.RemediatingCondition

// Reasons of Remediating while it is True, in the order in which they follow each other.
const (
	// ReconvergingHostReason means that the host is brought to what it must be, and the Machine has time to become healthy.
	ReconvergingHostReason = "ReconvergingHost"
	// RebootingHostReason means that the host reboots, and the Machine has time to become healthy.
	RebootingHostReason = "RebootingHost"
	// WaitingForReplacementReason means that the Machine is left to its MachineSet; the message says why, and what that says.
	WaitingForReplacementReason = "WaitingForReplacement"
	// MachineDeletingReason means that the Machine is being deleted.
	MachineDeletingReason = clusterv1.DeletingReason
)

// Reasons of Remediating while it is False.
const (
	// MachineNotFoundReason means that there is no Machine.
	MachineNotFoundReason = "MachineNotFound"
	// ControlPlaneMachineReason means that the Machine is a control plane's, which remediates it itself.
	ControlPlaneMachineReason = "ControlPlaneMachine"
	// RemediationSkippedReason means that the Machine is to be left alone: it has an annotation that says so.
	RemediationSkippedReason = "Skipped"
	// WaitingForHealthCheckReason means that the Machine's condition HealthCheckSucceeded is not False.
	WaitingForHealthCheckReason = "WaitingForHealthCheck"
	// NoOwnerToReplaceReason means that all was tried, and no MachineSet owns the Machine.
	NoOwnerToReplaceReason = "NoOwnerToReplace"
)

// Reasons that more than one condition has.
const (
	// NotStartedReason means that the conditions before this one are not True yet.
	NotStartedReason = "NotStarted"
)

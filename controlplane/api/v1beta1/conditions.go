// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// ControlPlaneFinalizer keeps a KubexmControlPlane until its Machines are gone.
const ControlPlaneFinalizer = "kubexmcontrolplane.controlplane.cluster.x-k8s.io"

// EtcdMemberRemovalHook is the annotation on a control plane Machine that keeps its host until its etcd member is gone.
const EtcdMemberRemovalHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/kubexm-etcd-member"

// Annotations that keep a record of the replacement of an unhealthy Machine: its name, when that began, and how many before it
// were replaced, as JSON. They are those of Cluster API's own control plane.
const (
	// RemediationInProgressAnnotation is on a KubexmControlPlane until the successor exists.
	RemediationInProgressAnnotation = "controlplane.cluster.x-k8s.io/remediation-in-progress"
	// RemediationForAnnotation is on the successor.
	RemediationForAnnotation = "controlplane.cluster.x-k8s.io/remediation-for"
)

// ApprovedDisruptionAnnotation on a KubexmControlPlane is the digest that its condition DisruptionAllowed shows: what is listed there
// may be done, and nothing else. It is taken off when that is done.
const ApprovedDisruptionAnnotation = "controlplane.cluster.x-k8s.io/approved-disruption"

// EtcdSavedAnnotation on a KubexmControlPlane is the version before whose rollout a snapshot of etcd was saved: Machines may be replaced
// for it. Who sets it by hand replaces them without one. It is taken off when all Machines have the version.
const EtcdSavedAnnotation = "controlplane.cluster.x-k8s.io/etcd-saved"

// PropagatedMetadataAnnotation on a Machine, a KubexmConfig and an infrastructure machine lists the labels and annotations that it has from
// the KubexmControlPlane's machineTemplate, so that they go from it when they go from there.
const PropagatedMetadataAnnotation = "controlplane.cluster.x-k8s.io/propagated-metadata"

// AcceptedRemovedAPIsAnnotation on a KubexmControlPlane is a version that may be rolled out though APIs are in use that it does not serve.
// It is removed when all Machines have the declared version.
const AcceptedRemovedAPIsAnnotation = "controlplane.cluster.x-k8s.io/accepted-removed-apis"

// AuthoritiesAnnotation on a KubexmControlPlane has the fingerprints of the cluster's key pairs, as package pki writes them
// (ca=sha256:…,etcd=…,proxy=…,sa=…), and of its encryption key (encryption=…). It is written before they are used. From then on no pair
// is made, and no host is touched while a Secret is missing or holds another pair. Anyone who removes it says that the pairs that are
// there now are the right ones.
const AuthoritiesAnnotation = "controlplane.cluster.x-k8s.io/kubexm-authorities"

// RecoverCertificatesAnnotation on a KubexmControlPlane has the Secrets of key pairs that are missing written again, from what a control
// plane host of the cluster has: of the Machine that the value names, or, with RecoverFromAny, of one after the other. No pair counts but
// those whose fingerprints are recorded, and no host is changed. It is taken off when nothing is missing any more.
const (
	RecoverCertificatesAnnotation = "controlplane.cluster.x-k8s.io/recover-certificates"
	RecoverFromAny                = "any"
)

// Conditions of a KubexmControlPlane.
const (
	// AvailableCondition is whether the control plane takes requests: its certificate authorities exist, etcd has quorum, and all
	// components of at least one Machine are healthy. Its message names what is not healthy all the same. While the API server does
	// not answer, it stays as it was for five minutes, and is Unknown then. It is Unknown, too, where components run as units, and no host
	// of a Machine that may be healthy answers. The Cluster shows it as ControlPlaneAvailable.
	AvailableCondition = clusterv1.AvailableCondition

	// InitializedCondition is whether the API server has taken requests, so that hosts can join. It stays True.
	InitializedCondition = "Initialized"

	// CertificatesAvailableCondition is whether the Secrets with the cluster's certificate authorities exist, be they the
	// user's or ours.
	CertificatesAvailableCondition = "CertificatesAvailable"

	// ControlPlaneComponentsHealthyCondition is whether API servers, controller managers and schedulers are healthy.
	ControlPlaneComponentsHealthyCondition = "ControlPlaneComponentsHealthy"

	// EtcdClusterHealthyCondition is whether etcd has all its members and quorum, no alarm, and no member that no host of the cluster has.
	EtcdClusterHealthyCondition = "EtcdClusterHealthy"

	// MachinesReadyCondition is whether all control plane Machines are Ready.
	MachinesReadyCondition = clusterv1.MachinesReadyCondition

	// MachinesUpToDateCondition is whether all control plane Machines are up to date.
	MachinesUpToDateCondition = clusterv1.MachinesUpToDateCondition

	// RollingOutCondition is whether a change is on its way to the Machines. The message says which, and what is waited for.
	RollingOutCondition = clusterv1.RollingOutCondition

	// ScalingUpCondition is whether there are fewer Machines than replicas, or one that has no Node yet. The message says what is
	// waited for, such as a host.
	ScalingUpCondition = clusterv1.ScalingUpCondition

	// ScalingDownCondition is whether there are more Machines than replicas, or hosts of etcd's own or of load balancers that are not
	// wanted any more and stay until others serve in their place. The message says what is waited for.
	ScalingDownCondition = clusterv1.ScalingDownCondition

	// RemediatingCondition is whether there are unhealthy Machines, to be repaired or replaced. The message says what becomes of them.
	RemediatingCondition = clusterv1.RemediatingCondition

	// DisruptionAllowedCondition is only there, and False, while the replacement of Machines waits, or that other hosts follow the first.
	// The message lists what would be done. What is done on a host that stays is shown by its KubexmConfig.
	DisruptionAllowedCondition = "DisruptionAllowed"

	// PreflightPassedCondition is only there, and False, while another version is not rolled out because of what was found before the
	// first host is touched. The message says what, and what to do.
	PreflightPassedCondition = "PreflightPassed"

	// WorkersCanJoinCondition is only there, and not True, while there are workers of another bootstrap provider that cannot join a control
	// plane of this kind. The message says which, and what to do.
	WorkersCanJoinCondition = "WorkersCanJoin"

	// ServingCertificatesApprovedCondition is only there, and not True, while kubelets of another bootstrap provider's workers ask for
	// serving certificates that are not approved. The message says which, and why.
	ServingCertificatesApprovedCondition = "ServingCertificatesApproved"

	// DeletingCondition is whether the control plane is being deleted, and what that waits for.
	DeletingCondition = clusterv1.DeletingCondition
)

// Reasons of Available and CertificatesAvailable.
const (
	// AvailableReason means that it is there and works.
	AvailableReason = clusterv1.AvailableReason
	// NotAvailableReason means that it is not; the message says what is missing.
	NotAvailableReason = clusterv1.NotAvailableReason
	// InternalErrorReason means an error that is not the user's; the manager's log has it.
	InternalErrorReason = clusterv1.InternalErrorReason
)

// Reasons of CertificatesAvailable. While it is False, nothing reaches a host.
const (
	// AuthorityMissingReason means that the Secret of a key pair is gone; the message says which, and how it is restored.
	AuthorityMissingReason = "AuthorityMissing"
	// AuthorityIncompleteReason means that a Secret has a certificate without its key, or a key without its certificate.
	AuthorityIncompleteReason = "AuthorityIncomplete"
	// AuthorityDiffersReason means that a Secret holds another key pair than the cluster was made with.
	AuthorityDiffersReason = "AuthorityDiffers"
)

// Reasons of Initialized.
const (
	// InitializedReason means that the API server has taken requests.
	InitializedReason = "Initialized"
	// NotInitializedReason means that it has not yet.
	NotInitializedReason = "NotInitialized"
	// WaitingForInfrastructureReason means that the Cluster's infrastructure is not provisioned yet.
	WaitingForInfrastructureReason = "WaitingForInfrastructure"
	// WaitingForEndpointReason means that nobody has said yet where the API server will be reached.
	WaitingForEndpointReason = "WaitingForControlPlaneEndpoint"
)

// Reasons of ControlPlaneComponentsHealthy and EtcdClusterHealthy.
const (
	// HealthyReason means that all is well.
	HealthyReason = "Healthy"
	// NotHealthyReason means that something is not; the message says what, and on which host.
	NotHealthyReason = "NotHealthy"
	// ConnectionDownReason means that the cluster's API server does not answer us.
	ConnectionDownReason = clusterv1.ConnectionDownReason
	// HealthUnknownReason means that nothing is known yet.
	HealthUnknownReason = "HealthUnknown"
	// InspectionFailedReason means that nobody could ask how something is, as where its host does not answer; the message says why.
	InspectionFailedReason = clusterv1.InspectionFailedReason
)

// Reasons of OwnerRemediated, on Machines that a MachineHealthCheck has found unhealthy.
const (
	// RemediationDeferredReason means that the Machine is not replaced yet; the message says what is waited for.
	RemediationDeferredReason = "RemediationDeferred"
	// CannotBeRemediatedReason means that the Machine is not replaced unless something else is repaired; the message says what.
	CannotBeRemediatedReason = "CannotBeRemediated"
	// RemediationMachineDeletingReason means that the Machine is being deleted; another will be made.
	RemediationMachineDeletingReason = "MachineDeleting"
)

// Reasons of DisruptionAllowed.
const (
	// WaitingForApprovalReason means that somebody has to agree; the message says how.
	WaitingForApprovalReason = "WaitingForApproval"
	// OutsideMaintenanceWindowReason means that no maintenance window is open; the message says when the next one opens.
	OutsideMaintenanceWindowReason = "OutsideMaintenanceWindow"
	// CanarySettlingReason means that the first host that has followed has not been well for long enough.
	CanarySettlingReason = "CanarySettling"
)

// Reasons of PreflightPassed.
const (
	// EtcdNotSavedReason means that there is no snapshot of etcd yet from before the first Machine is replaced.
	EtcdNotSavedReason = "EtcdNotSaved"
	// RemovedAPIsInUseReason means that APIs are in use that the version does not serve; the message says which, and by what.
	RemovedAPIsInUseReason = "RemovedAPIsInUse"
	// APIsUnknownReason means that the cluster could not be asked for them.
	APIsUnknownReason = "APIsUnknown"
)

// Reasons of WorkersCanJoin and ServingCertificatesApproved.
const (
	// KubeadmConfigNotSupportedReason means that workers have a KubeadmConfig, and the control plane is not kubeadm's.
	KubeadmConfigNotSupportedReason = "KubeadmConfigNotSupported"
	// VersionUnknownReason means that the version by which "kubeadm join" joins could not be read or written in the cluster.
	VersionUnknownReason = "VersionUnknown"
	// RequestsNotApprovedReason means that requests are not those of a Machine's Node for what is its own.
	RequestsNotApprovedReason = "RequestsNotApproved"
	// RequestsUnknownReason means that the cluster could not be asked for requests.
	RequestsUnknownReason = "RequestsUnknown"
)

// Reasons of Deleting.
const (
	// NotDeletingReason means that the control plane is not being deleted.
	NotDeletingReason = clusterv1.NotDeletingReason
	// WaitingForWorkersDeletionReason means that workers still exist. The control plane goes last, so that they can be drained.
	WaitingForWorkersDeletionReason = "WaitingForWorkersDeletion"
	// WaitingForMachineDeletionReason means that control plane Machines still exist.
	WaitingForMachineDeletionReason = "WaitingForMachineDeletion"
	// DeletionCompletedReason means that nothing is left.
	DeletionCompletedReason = clusterv1.DeletionCompletedReason
)

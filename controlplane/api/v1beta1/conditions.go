// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// ControlPlaneFinalizer keeps a KubexmControlPlane until its Machines are gone.
const ControlPlaneFinalizer = "kubexmcontrolplane.controlplane.cluster.x-k8s.io"

// LeaveHook is the annotation on a control plane Machine that keeps its host until its etcd member is gone.
const LeaveHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/kubexm-leave"

// Conditions of a KubexmControlPlane.
const (
	// AvailableCondition is whether the control plane takes requests. The Cluster shows it as ControlPlaneAvailable.
	AvailableCondition = clusterv1.AvailableCondition

	// InitializedCondition is whether the API server has taken requests, so that hosts can join. It stays True.
	InitializedCondition = "Initialized"

	// CertificatesAvailableCondition is whether the Secrets with the cluster's certificate authorities exist, be they the
	// user's or ours.
	CertificatesAvailableCondition = "CertificatesAvailable"

	// ControlPlaneComponentsHealthyCondition is whether API servers, controller managers and schedulers are healthy.
	ControlPlaneComponentsHealthyCondition = "ControlPlaneComponentsHealthy"

	// EtcdClusterHealthyCondition is whether etcd has all its members and quorum.
	EtcdClusterHealthyCondition = "EtcdClusterHealthy"

	// MachinesReadyCondition is whether all control plane Machines are Ready.
	MachinesReadyCondition = clusterv1.MachinesReadyCondition

	// MachinesUpToDateCondition is whether all control plane Machines are as declared.
	MachinesUpToDateCondition = clusterv1.MachinesUpToDateCondition

	// RollingOutCondition is whether a change is on its way to the Machines.
	RollingOutCondition = clusterv1.RollingOutCondition

	// ScalingUpCondition is whether there are fewer Machines than replicas.
	ScalingUpCondition = clusterv1.ScalingUpCondition

	// ScalingDownCondition is whether there are more Machines than replicas.
	ScalingDownCondition = clusterv1.ScalingDownCondition

	// RemediatingCondition is whether an unhealthy Machine is being replaced.
	RemediatingCondition = clusterv1.RemediatingCondition

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
	// InvalidReason means that the object cannot work as it is; the message has each field's path and a remedy. It is
	// what users see where no webhook refuses such objects.
	InvalidReason = "Invalid"
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

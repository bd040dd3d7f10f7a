// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OperationType is what is done with a host.
//
// +kubebuilder:validation:Enum=Enroll;Converge;ConvergeNonDisruptive;CheckDrift;AssessDisruption;Reboot;Restart;RenewCertificates;CollectLogs;RecoverCertificates;SaveEtcd;BackupEtcd;AskEtcd;CloseAccess;StopAPIServer;Reset
type OperationType string

const (
	// EnrollOperation finds the host among the addresses that its infrastructure knows, and pins a key that is made on it.
	EnrollOperation OperationType = "Enroll"
	// ConvergeOperation makes the host what it must be.
	ConvergeOperation OperationType = "Converge"
	// ConvergeNonDisruptiveOperation runs the steps of the host's plan that disrupt nothing, while the rest of it waits.
	ConvergeNonDisruptiveOperation OperationType = "ConvergeNonDisruptive"
	// CheckDriftOperation compares the host with its plan and changes nothing.
	CheckDriftOperation OperationType = "CheckDrift"
	// AssessDisruptionOperation finds out what converging would disrupt and changes nothing. The condition DisruptionAllowed has its
	// result.
	AssessDisruptionOperation OperationType = "AssessDisruption"
	// RebootOperation reboots the host.
	RebootOperation OperationType = "Reboot"
	// RestartOperation restarts components on the host.
	RestartOperation OperationType = "Restart"
	// RenewCertificatesOperation renews certificates on the host, however long they last.
	RenewCertificatesOperation OperationType = "RenewCertificates"
	// CollectLogsOperation keeps what the host has logged where the manager runs.
	CollectLogsOperation OperationType = "CollectLogs"
	// RecoverCertificatesOperation reads key pairs of the cluster back from the host.
	RecoverCertificatesOperation OperationType = "RecoverCertificates"
	// SaveEtcdOperation saves a snapshot of etcd on the host.
	SaveEtcdOperation OperationType = "SaveEtcd"
	// BackupEtcdOperation saves a backup of etcd on the host.
	BackupEtcdOperation OperationType = "BackupEtcd"
	// AskEtcdOperation asks the member of etcd on the host for what status.etcd shows.
	AskEtcdOperation OperationType = "AskEtcd"
	// CloseAccessOperation closes what the bootstrap data has opened, for good.
	CloseAccessOperation OperationType = "CloseAccess"
	// StopAPIServerOperation ends the API server of a host whose etcd member is about to be removed.
	StopAPIServerOperation OperationType = "StopAPIServer"
	// ResetOperation makes the host what it was before.
	ResetOperation OperationType = "Reset"
)

// CheckDriftAnnotation on a KubexmConfig has its host compared with its plan, once. Its value is when that was asked for, such as
// 2026-11-23T12:00:00Z. What is found is in status.drift, and repaired or reported as driftPolicy says.
const CheckDriftAnnotation = "bootstrap.cluster.x-k8s.io/check-drift"

// CollectLogsAnnotation on a KubexmConfig has what its host has logged kept as a file where the manager runs, once. Its value is when
// that was asked for, such as 2026-11-23T12:00:00Z.
const CollectLogsAnnotation = "bootstrap.cluster.x-k8s.io/collect-logs"

// BackupEtcdAnnotation on a KubexmConfig has a backup of etcd saved on its host, which has a member, once: where scheduled ones go, if
// there are any. Its value is when that was asked for, such as 2026-11-23T12:00:00Z.
const BackupEtcdAnnotation = "bootstrap.cluster.x-k8s.io/backup-etcd"

// RestartAnnotation on a KubexmConfig has components restarted on its host, once. Its value is when that was asked for, and which: those of
// them that the host has, such as "2026-11-23T12:00:00Z Kubelet,APIServer".
const RestartAnnotation = "bootstrap.cluster.x-k8s.io/restart"

// RenewCertificatesAnnotation on a KubexmConfig has certificates renewed on its host, once, however long they last. Its value is when that
// was asked for, and which: those of them that the host has, such as "2026-11-23T12:00:00Z apiserver,etcd-member"; all where none is named.
const RenewCertificatesAnnotation = "bootstrap.cluster.x-k8s.io/renew-certificates"

// OperationStatus is the last time that something was done with the host, or that it is being done.
type OperationStatus struct {
	// type is what is, or was, done.
	// +required
	Type OperationType `json:"type,omitempty"`

	// requestTime is the time in the annotation that asked for it. It is not set where nobody did.
	// +optional
	RequestTime metav1.Time `json:"requestTime,omitempty,omitzero"`

	// startTime is when it began.
	// +optional
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`

	// endTime is when it ended. It is not set while it goes on.
	// +optional
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`

	// outcome is how it ended. It is not set while it goes on. An etcd that others run and that does not give its data away is none to
	// save: SaveEtcd succeeds.
	// +optional
	Outcome RunOutcome `json:"outcome,omitempty"`

	// message is why it failed, or what came of it. While a Converge goes on after one that has failed, it is why that has.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// changed is how many steps changed something on the host.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Changed *int32 `json:"changed,omitempty"`

	// differing is how many steps were found to differ: of CheckDrift alone.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Differing *int32 `json:"differing,omitempty"`

	// failures is how many times in a row Converge has failed, this one included; the wait before the next grows with it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failures *int32 `json:"failures,omitempty"`

	// restored is how many of these have rolled the host back to a savepoint: its programs, or its control plane. After the third, no other
	// follows until the host is to become something else, or is asked for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restored *int32 `json:"restored,omitempty"`

	// inputDigest is the digest of all that Converge was to make of the host, as sha256:… What has failed for it is not held against
	// another.
	// +optional
	// +kubebuilder:validation:MinLength=71
	// +kubebuilder:validation:MaxLength=71
	InputDigest string `json:"inputDigest,omitempty"`
}

// Operation is a copy of the last time that something was done with the host, only its type if it never was.
func (s *KubexmConfigStatus) Operation(kind OperationType) *OperationStatus {
	for _, o := range s.Operations {
		if o.Type == kind {
			return &o
		}
	}
	return &OperationStatus{Type: kind}
}

// SetOperation notes the last time that something was done with the host.
func (s *KubexmConfigStatus) SetOperation(o OperationStatus) { *s.OperationFor(o.Type) = o }

// OperationFor is Operation to be changed in place; the pointer holds until another type is noted.
func (s *KubexmConfigStatus) OperationFor(kind OperationType) *OperationStatus {
	at := slices.IndexFunc(s.Operations, func(have OperationStatus) bool { return have.Type == kind })
	if at < 0 {
		s.Operations = append(s.Operations, OperationStatus{Type: kind})
		at = len(s.Operations) - 1
	}
	return &s.Operations[at]
}

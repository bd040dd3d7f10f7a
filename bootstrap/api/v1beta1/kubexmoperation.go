// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// KubexmOperationType is what is to be done with hosts.
//
// +kubebuilder:validation:Enum=CheckDrift;Repair;Reboot;Restart;RenewCertificates;CollectLogs;BackupEtcd;RestoreEtcd
type KubexmOperationType string

const (
	// CheckDriftType compares hosts with their plans. What is found is repaired or reported as driftPolicy says.
	CheckDriftType KubexmOperationType = "CheckDrift"
	// RepairType brings hosts to what they must be, once more.
	RepairType KubexmOperationType = "Repair"
	// RebootType reboots hosts, and waits until they are ready again.
	RebootType KubexmOperationType = "Reboot"
	// RestartType restarts components on hosts, and waits until they are well.
	RestartType KubexmOperationType = "Restart"
	// RenewCertificatesType renews certificates on hosts, however long they last, and waits until those who use them are well.
	RenewCertificatesType KubexmOperationType = "RenewCertificates"
	// CollectLogsType keeps what hosts have logged as files where the manager runs.
	CollectLogsType KubexmOperationType = "CollectLogs"
	// BackupEtcdType saves a backup of etcd on each of the hosts that has a member.
	BackupEtcdType KubexmOperationType = "BackupEtcd"
	// RestoreEtcdType restores etcd from a backup, on all of a Cluster's hosts that have to do with it, at once.
	RestoreEtcdType KubexmOperationType = "RestoreEtcd"
)

// OperationTargetKind is what is named by a target.
//
// +kubebuilder:validation:Enum=Host;Machine;MachineDeployment;ControlPlane;Cluster
type OperationTargetKind string

const (
	// HostTarget is one host, by the name in status.host.name of its KubexmConfig. Where hosts of several Clusters are called so, the label
	// cluster.x-k8s.io/cluster-name of the KubexmOperation says whose is meant.
	HostTarget OperationTargetKind = "Host"
	// MachineTarget is the host of a Machine.
	MachineTarget OperationTargetKind = "Machine"
	// MachineDeploymentTarget are the hosts of a MachineDeployment's Machines.
	MachineDeploymentTarget OperationTargetKind = "MachineDeployment"
	// ControlPlaneTarget are the hosts of a control plane's Machines.
	ControlPlaneTarget OperationTargetKind = "ControlPlane"
	// ClusterTarget are all hosts of a Cluster, those of etcd and of load balancers among them.
	ClusterTarget OperationTargetKind = "Cluster"
)

// OperationTarget names hosts in the namespace of the object that names them.
type OperationTarget struct {
	// kind is what is named: Host, Machine, MachineDeployment, ControlPlane or Cluster.
	// +required
	Kind OperationTargetKind `json:"kind,omitempty"`

	// name is its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// EtcdRestore is what etcd is restored from, and what may be lost by that.
type EtcdRestore struct {
	// snapshot is where the backup lies: on a host, or in a bucket. Its manifest lies beside it.
	// +required
	Snapshot EtcdSnapshotSource `json:"snapshot,omitempty,omitzero"`

	// acceptedLossSeconds is how long before the operation begins the snapshot may have been saved at most. All that was written to the
	// cluster since it was saved is lost: an older one is refused.
	// +required
	// +kubebuilder:validation:Minimum=1
	AcceptedLossSeconds *int32 `json:"acceptedLossSeconds,omitempty"`

	// ofCluster is the name of the cluster that the backup is of, where that is another one, or had other certificate authorities. If
	// unset, the backup must be of this cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	OfCluster string `json:"ofCluster,omitempty"`
}

// EtcdSnapshotSource is where a backup lies: one of its fields is set.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type EtcdSnapshotSource struct {
	// host is one of the cluster's hosts that have to do with etcd, where the backup was saved, or put.
	// +optional
	Host EtcdSnapshotOnHost `json:"host,omitempty,omitzero"`

	// bucket is in an object store that speaks S3, which the manager reaches. Hosts need no way to it.
	// +optional
	Bucket EtcdSnapshotInBucket `json:"bucket,omitempty,omitzero"`
}

// EtcdSnapshotOnHost is a snapshot on a host.
type EtcdSnapshotOnHost struct {
	// name is the host's name: that in status.host.name of its KubexmConfig.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// path is the snapshot's file there, such as /var/lib/kubexm/etcd-backups/etcd-prod-20261123T030000Z-cp1.db.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/.*\.db$`
	Path string `json:"path,omitempty"`
}

// EtcdSnapshotInBucket is a snapshot in a bucket.
type EtcdSnapshotInBucket struct {
	// location is s3://BUCKET/PREFIX/NAME.db.
	// +required
	// +kubebuilder:validation:MinLength=10
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^s3://.+/.*\.db$`
	Location string `json:"location,omitempty"`

	// endpoint is the object store's URL, with https. If unset, AWS's.
	// +optional
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://`
	Endpoint string `json:"endpoint,omitempty"`

	// region is the bucket's. If unset, us-east-1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`

	// secretRef names a Secret in this namespace with the label bootstrap.cluster.x-k8s.io/for-hosts: object-store, and in it
	// access-key-id, secret-access-key and, if there is one, session-token; and ca.crt, if the object store is trusted by certificates that
	// the manager's machine does not trust; and endpoint, if it is for that object store alone.
	// +required
	SecretRef spec.SecretReference `json:"secretRef,omitempty,omitzero"`
}

// KubexmOperationSpec says what is to be done once, with which hosts. It cannot be changed.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'RestoreEtcd') == has(self.restoreEtcd)",fieldPath=".restoreEtcd",message="what etcd is restored from is named for the type RestoreEtcd, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'RestoreEtcd' || self.target.kind == 'Cluster'",fieldPath=".target.kind",message="etcd is restored on all hosts of a Cluster at once: Cluster"
// +kubebuilder:validation:XValidation:rule="self.type != 'RestoreEtcd' || !has(self.maxConcurrent)",fieldPath=".maxConcurrent",message="etcd is restored on all hosts at once"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Restart') == has(self.components)",fieldPath=".components",message="what is restarted is named for the type Restart, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type == 'RenewCertificates' || !has(self.certificates)",fieldPath=".certificates",message="certificates are named for the type RenewCertificates, and for no other"
type KubexmOperationSpec struct {
	// type is what is done: CheckDrift, Repair, Reboot, Restart, RenewCertificates, CollectLogs, BackupEtcd or RestoreEtcd.
	// +required
	Type KubexmOperationType `json:"type,omitempty"`

	// components are what is restarted on each host, of Restart alone, which needs them: ContainerRuntime, Kubelet, Etcd, APIServer,
	// ControllerManager, Scheduler, Proxy or LoadBalancer. A host restarts those that it has; hosts of the target that have none are left
	// out. One that the cluster cannot have on any host, such as Proxy where kube-proxy is a DaemonSet, fails on each.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Components []spec.ComponentName `json:"components,omitempty"`

	// certificates are what is renewed on each host, of RenewCertificates alone, by the names that `kubexm certs renew` has, such as
	// apiserver, etcd-member or kubelet. A host renews those that it has; hosts of the target that have none are left out. One that the
	// cluster cannot have on any host fails on each. If unset, all that a host has.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Certificates []spec.CertificateName `json:"certificates,omitempty"`

	// restoreEtcd is what etcd is restored from, of RestoreEtcd alone, which needs it. That has the kind of target Cluster, and is done on
	// all of its hosts of etcd and of the control plane at once: these stand still from before it begins until it is done.
	// +optional
	RestoreEtcd EtcdRestore `json:"restoreEtcd,omitempty,omitzero"`

	// target is with which hosts: those that it has when the operation begins.
	// +required
	Target OperationTarget `json:"target,omitempty,omitzero"`

	// maxConcurrent is with how many hosts at once. If unset, 1 for Repair, Reboot, Restart and RenewCertificates, which may disrupt what
	// runs there and begin with no further host after one has failed, 1 for BackupEtcd, and 10 for the others. Etcd and what uses it
	// restart on one host of the control plane at a time, whatever this says. Not for RestoreEtcd.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConcurrent *int32 `json:"maxConcurrent,omitempty"`

	// timeoutSeconds is how long each host has from when it is its turn; after that, it has failed. If unset, 1800 for Repair,
	// Restart, RenewCertificates and BackupEtcd, 900 for Reboot and 600 for the others. It stops nothing that goes on there: that has
	// limits of its own. Of RestoreEtcd it is how long it may take until all hosts have the snapshot and nothing has ended yet, 1800 if
	// unset; from then on it is tried until it is done.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// ttlSecondsAfterFinished is how long this object is kept after it has ended. If unset, until somebody deletes it, or the Cluster.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// OperationPhase is how far an operation is on one host.
//
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Skipped
type OperationPhase string

const (
	// OperationPending means that it is not the host's turn yet.
	OperationPending OperationPhase = "Pending"
	// OperationRunning means that the host was asked for it.
	OperationRunning OperationPhase = "Running"
	// OperationSucceeded means that it was done.
	OperationSucceeded OperationPhase = "Succeeded"
	// OperationFailed means that it was not; the message says why.
	OperationFailed OperationPhase = "Failed"
	// OperationSkipped means that it has not begun, and will not; the message says why.
	OperationSkipped OperationPhase = "Skipped"
)

// HostOperationStatus is how far an operation is on one host.
type HostOperationStatus struct {
	// configName is the host's KubexmConfig.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigName string `json:"configName,omitempty"`

	// name is the host's name, or that of its KubexmConfig while that has none.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// phase is how far it is: Pending, Running, Succeeded, Failed or Skipped.
	// +required
	Phase OperationPhase `json:"phase,omitempty"`

	// requestTime is when the host was asked for it.
	// +optional
	RequestTime metav1.Time `json:"requestTime,omitempty,omitzero"`

	// endTime is when it ended there.
	// +optional
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`

	// message is what came of it, what it waits for, or why it failed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// KubexmOperationStatus is how far an operation is.
//
// +kubebuilder:validation:MinProperties=1
type KubexmOperationStatus struct {
	// conditions are Succeeded, which is Unknown until the operation has ended, and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of this object that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startTime is when it began.
	// +optional
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`

	// completionTime is when it ended.
	// +optional
	CompletionTime metav1.Time `json:"completionTime,omitempty,omitzero"`

	// summary is with how many hosts of all it has ended, such as 3/5.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Summary string `json:"summary,omitempty"`

	// hosts are the hosts that the target had when it began.
	// +optional
	// +listType=map
	// +listMapKey=configName
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5000
	Hosts []HostOperationStatus `json:"hosts,omitempty"`
}

// SucceededCondition of a KubexmOperation is whether it was done with all of its hosts. It is Unknown until it has ended.
const SucceededCondition = "Succeeded"

// Reasons of Succeeded.
const (
	// OperationSucceededReason means that it was done.
	OperationSucceededReason = "Succeeded"
	// OperationFailedReason means that it was not done with all hosts; the message names those, and status.hosts says why.
	OperationFailedReason = "Failed"
	// OperationRunningReason means that it goes on.
	OperationRunningReason = "Running"
	// TargetNotFoundReason means that the target does not exist, or has no host of ours, yet.
	TargetNotFoundReason = "TargetNotFound"
	// OperationWaitingReason means that nothing was begun with any host yet; the message says what is waited for.
	OperationWaitingReason = "Waiting"
)

// What must survive a move of objects to another management cluster, which takes statuses away: annotations of a KubexmOperation.
const (
	// OperationStartedAnnotation is when it began.
	OperationStartedAnnotation = "bootstrap.cluster.x-k8s.io/operation-started"
	// OperationCompletedAnnotation is when it ended, and how: Succeeded or Failed.
	OperationCompletedAnnotation = "bootstrap.cluster.x-k8s.io/operation-completed"
	// OperationRestoreAnnotation is which restore a RestoreEtcd is, once its backup was examined: the restore's ID, when it was asked for,
	// and the snapshot's SHA-256 and size.
	OperationRestoreAnnotation = "bootstrap.cluster.x-k8s.io/operation-restore"
	// OperationRestoringAnnotation is since when a RestoreEtcd is tried until it is done, because something may have ended on a host.
	OperationRestoringAnnotation = "bootstrap.cluster.x-k8s.io/operation-restoring"
)

// AbandonRestoreAnnotation on a KubexmOperation that is deleted while it restores etcd lets it go all the same: hosts stay as they are, and
// somebody else restores etcd. Its value does not matter.
const AbandonRestoreAnnotation = "bootstrap.cluster.x-k8s.io/abandon-restore"

// OperationFinalizer keeps a KubexmOperation that restores etcd until it is done: half way, the cluster has no API server.
const OperationFinalizer = "kubexmoperation.bootstrap.cluster.x-k8s.io"

// HeldByAnnotation on a KubexmClusterConfig has the Cluster's hosts of etcd and of the control plane stand still: nothing is begun on them
// but by the KubexmOperation that it names, and no Machine of the control plane is made, replaced or changed. Its value is that
// KubexmOperation's name and the ID in its OperationRestoreAnnotation. It holds nothing when there is none, or when that has ended.
const HeldByAnnotation = "bootstrap.cluster.x-k8s.io/held-by"

// HeldReason means that nothing is done with the host, or the control plane, because a KubexmOperation holds it; the message says which.
const HeldReason = "Held"

// ForHostsObjectStore is the value of ForHostsLabel of a Secret by which the manager reads backups of etcd from an object store.
const ForHostsObjectStore = "object-store"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmoperations,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".spec.type",description="What is done"
// +kubebuilder:printcolumn:name="Kind",type="string",JSONPath=".spec.target.kind",description="What is named by the target"
// +kubebuilder:printcolumn:name="Target",type="string",JSONPath=".spec.target.name",description="With whose hosts"
// +kubebuilder:printcolumn:name="Succeeded",type="string",JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`,description="Whether it was done with all of them"
// +kubebuilder:printcolumn:name="Hosts",type="string",JSONPath=".status.summary",description="With how many of them it has ended"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`,description="What it waits for, or what failed",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmOperation has something done once with hosts, and keeps what came of it.
type KubexmOperation struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is to be done.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an operation cannot be changed: create another one"
	Spec KubexmOperationSpec `json:"spec,omitempty,omitzero"`

	// status is how far it is.
	// +optional
	Status KubexmOperationStatus `json:"status,omitempty,omitzero"`
}

// GetConditions is for Cluster API's conditions package.
func (o *KubexmOperation) GetConditions() []metav1.Condition { return o.Status.Conditions }

// SetConditions is for Cluster API's conditions package.
func (o *KubexmOperation) SetConditions(conditions []metav1.Condition) {
	o.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// KubexmOperationList is a list of KubexmOperations.
type KubexmOperationList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmOperations.
	// +required
	Items []KubexmOperation `json:"items"`
}

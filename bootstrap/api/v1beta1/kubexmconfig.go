// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// KubexmConfigSpec is what one host must be. What it leaves out, and all that hosts share, is said by the Cluster's
// KubexmClusterConfig.
type KubexmConfigSpec struct {
	// The host's own kubelet, labels, taints, system, files and commands.
	spec.Node `json:",inline"`

	// access is how the host is reached, by what the infrastructure leaves open: what is unset, the bootstrap data brings to the host. With
	// KubexmMachines it has no use, because their KubexmHosts say it.
	// +optional
	Access spec.Access `json:"access,omitempty,omitzero"`

	// accessPolicy is Open, or Closed, where what the bootstrap data has opened is closed again for good once the host is what it must be
	// and its Node has joined: nobody logs in there any more, so that the host is neither observed, changed nor reset; it is replaced. For
	// workers of other infrastructures than KubexmMachines alone, and with a reset.policy other than Always. If unset, Open.
	// +optional
	AccessPolicy spec.AccessPolicy `json:"accessPolicy,omitempty"`

	// format is how the bootstrap data is written: CloudConfig, or Ignition, for images that Ignition sets up when they first start. It
	// never changes, because the infrastructure reads the data once. With KubexmMachines, which do not read it, and BYOH, whose agent knows
	// no Ignition, Ignition is refused. If unset, CloudConfig.
	// +optional
	Format BootstrapFormat `json:"format,omitempty"`

	// bootstrapMode is Init where the host begins the control plane (or etcd on hosts of its own), and Join where it joins it. It is
	// set by the KubexmControlPlane, and never changes; templates have none.
	// +optional
	BootstrapMode spec.BootstrapMode `json:"bootstrapMode,omitempty"`

	// hostRef is the host of the inventory that this is for, where it does not become a Node: instead of a Machine's. It is
	// set by the KubexmControlPlane, and never changes; templates have none.
	// +optional
	HostRef HostReference `json:"hostRef,omitempty,omitzero"`
}

// BootstrapFormat is how bootstrap data is written.
//
// +kubebuilder:validation:Enum=CloudConfig;Ignition
type BootstrapFormat string

const (
	// CloudConfigFormat is for cloud-init, and for those who run a part of what that does.
	CloudConfigFormat BootstrapFormat = "CloudConfig"
	// IgnitionFormat is for Ignition, from its specification 3.0.0 on.
	IgnitionFormat BootstrapFormat = "Ignition"
)

// OrDefault is the format that counts.
func (f BootstrapFormat) OrDefault() BootstrapFormat { return cmp.Or(f, CloudConfigFormat) }

// Contract is what Cluster API calls the format, in the Secret with the bootstrap data.
func (f BootstrapFormat) Contract() string {
	if f == IgnitionFormat {
		return "ignition"
	}
	return "cloud-config"
}

// HostReference names a KubexmHost in the namespace of the object that names it, and says what it is for.
type HostReference struct {
	// name is the KubexmHost's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// role is what the host is for: Etcd or LoadBalancer.
	// +required
	Role spec.Role `json:"role,omitempty"`
}

// KubexmConfigStatus is how far the host is.
//
// +kubebuilder:validation:MinProperties=1
type KubexmConfigStatus struct {
	// conditions are Ready (whether the bootstrap data exists, which the Machine shows as BootstrapConfigReady), HostReady (the summary
	// of those that follow), DataSecretAvailable, HostReachable, PreflightPassed, HostConverged, NodeJoined, DisruptionAllowed,
	// APIServerStopped, HostReset and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what Cluster API waits for before the infrastructure is made.
	// +optional
	Initialization KubexmConfigInitializationStatus `json:"initialization,omitempty,omitzero"`

	// dataSecretName is the Secret with the bootstrap data. It is always that of this KubexmConfig.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`

	// observedGeneration is the generation of this object that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// host is the host that is made a Node, as soon as the infrastructure says which.
	// +optional
	Host HostStatus `json:"host,omitempty,omitzero"`

	// heldBy is the KubexmOperation for which nothing is done with the host, and nothing goes on there: what the annotation
	// bootstrap.cluster.x-k8s.io/held-by of the KubexmClusterConfig says.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	HeldBy string `json:"heldBy,omitempty"`

	// progress is how many of the plan's steps are so.
	// +optional
	Progress ProgressStatus `json:"progress,omitempty,omitzero"`

	// planDigest is the digest of the plan that the host was last brought to, as sha256:… A plan with another digest is run.
	// +optional
	// +kubebuilder:validation:MinLength=71
	// +kubebuilder:validation:MaxLength=71
	PlanDigest string `json:"planDigest,omitempty"`

	// kubernetesVersion is the version of Kubernetes that the host was last brought to, such as v1.36.3. While it is not that of
	// the Machine, the host is on its way.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// convergedGeneration is the generation of this object that the host was last brought to. While it is not that of the object, the
	// host is on its way.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ConvergedGeneration int64 `json:"convergedGeneration,omitempty"`

	// factsDigest is the digest of the host's facts that this plan was made from, as sha256:…
	// +optional
	// +kubebuilder:validation:MinLength=71
	// +kubebuilder:validation:MaxLength=71
	FactsDigest string `json:"factsDigest,omitempty"`

	// membersDigest is the digest of the members of the KubexmClusterConfig that the host was last brought to, as sha256:… Where one of
	// them is Removed, this host has seen that its etcd member does not exist.
	// +optional
	// +kubebuilder:validation:MinLength=71
	// +kubebuilder:validation:MaxLength=71
	MembersDigest string `json:"membersDigest,omitempty"`

	// certificates are all on the host, no matter who made them, by their files, each with its end, as they were when the host was last
	// observed. Of more than fit here, these are the first to end.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Certificates []CertificateStatus `json:"certificates,omitempty"`

	// etcd is etcd as reported by the host's member, at each drift check and run, and when somebody asks for it.
	// Hosts without a member have none.
	// +optional
	Etcd EtcdStatus `json:"etcd,omitempty,omitzero"`

	// drift is what the last drift check found to differ from the host's plan, as long as it does: of more than fit here, the first. The
	// condition HostConverged sums it up.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Drift []DriftStatus `json:"drift,omitempty"`

	// operations are the last of each type that was done with the host, or is being done. CheckDrift and AskEtcd are there where
	// somebody asked for them; AssessDisruption is not. The key pairs that RecoverCertificates reads are in Secrets alone, and the
	// snapshots that a host saves by itself before it is brought to another version are not shown.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Operations []OperationStatus `json:"operations,omitempty"`
}

// KubexmConfigInitializationStatus is part of the contract with Cluster API.
//
// +kubebuilder:validation:MinProperties=1
type KubexmConfigInitializationStatus struct {
	// dataSecretCreated is true when the Secret with the bootstrap data exists.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}

// HostStatus is one host, by name and address.
type HostStatus struct {
	// name is the host's name, which its Node has too.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// address is where the host is reached over SSH.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Address string `json:"address,omitempty"`

	// internalAddress is where the cluster's other hosts reach it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	InternalAddress string `json:"internalAddress,omitempty"`

	// bmcAddress is the URL of the machine's management controller, if one is declared.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	BMCAddress string `json:"bmcAddress,omitempty"`

	// observedAddresses are those of the host's own interfaces, as it was enrolled with them. Only they can be its Node's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=45
	ObservedAddresses []string `json:"observedAddresses,omitempty"`

	// hostKey is the host's public key that was pinned when it was enrolled, as in authorized_keys. KubexmHosts have theirs.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	HostKey string `json:"hostKey,omitempty"`
}

// CertificateType is whose a certificate is.
//
// +kubebuilder:validation:Enum=Component;Kubelet;Administrator;Authority;Other
type CertificateType string

const (
	// ComponentCertificate is one that kubexm or kubeadm made for a component of Kubernetes or etcd on the host. kubexm renews it. The
	// host of another Machine has another.
	ComponentCertificate CertificateType = "Component"
	// KubeletCertificate is one that the kubelet made, and renews, itself.
	KubeletCertificate CertificateType = "Kubelet"
	// AdministratorCertificate is one that kubexm or kubeadm made for people on the host. kubexm renews it.
	AdministratorCertificate CertificateType = "Administrator"
	// AuthorityCertificate is one that signs others.
	AuthorityCertificate CertificateType = "Authority"
	// OtherCertificate is one that others have put there, and renew.
	OtherCertificate CertificateType = "Other"
)

// CertificateStatus is a file with a certificate on the host.
type CertificateStatus struct {
	// path is the file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// type is whose it is: Component, Kubelet, Administrator, Authority or Other.
	// +optional
	Type CertificateType `json:"type,omitempty"`

	// notAfter is when it ends: of several in the file, such as a chain, the first to end.
	// +optional
	NotAfter metav1.Time `json:"notAfter,omitempty,omitzero"`

	// message is why it cannot be read; notAfter is unset then.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// EtcdStatus is etcd as its member on the host tells of it.
type EtcdStatus struct {
	// observedTime is when it was asked.
	// +required
	ObservedTime metav1.MicroTime `json:"observedTime,omitempty,omitzero"`

	// message is why it did not answer; nothing else is set then.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// clusterID is the ID of etcd's cluster, in hexadecimal digits.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	ClusterID string `json:"clusterID,omitempty"`

	// memberID is the ID of the host's own member, in hexadecimal digits.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	MemberID string `json:"memberID,omitempty"`

	// members are all that etcd lists, whether they run or not.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Members []EtcdMemberStatus `json:"members,omitempty"`

	// alarms are those that members have raised.
	// +optional
	// +listType=map
	// +listMapKey=memberID
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Alarms []EtcdAlarmStatus `json:"alarms,omitempty"`
}

// EtcdMemberType is whether a member has a vote.
//
// +kubebuilder:validation:Enum=Voter;Learner
type EtcdMemberType string

const (
	// EtcdVoter counts for quorum.
	EtcdVoter EtcdMemberType = "Voter"
	// EtcdLearner does not yet: it takes in the data of the others.
	EtcdLearner EtcdMemberType = "Learner"
)

// EtcdMemberStatus is a member of etcd as etcd lists it.
type EtcdMemberStatus struct {
	// id is the member's, in hexadecimal digits.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	ID string `json:"id,omitempty"`

	// name is what the member calls itself. Empty if it has never started.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// peerURL is where the others reach it: of several, the first.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	PeerURL string `json:"peerURL,omitempty"`

	// type is Voter or Learner.
	// +required
	Type EtcdMemberType `json:"type,omitempty"`
}

// EtcdAlarmStatus is an alarm of a member.
type EtcdAlarmStatus struct {
	// memberID is the member's ID, in hexadecimal digits. It may have been removed since.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	MemberID string `json:"memberID,omitempty"`

	// type is NOSPACE (its database has reached its quota, and etcd refuses writes), CORRUPT (its data is not that of the others), or
	// what else etcd calls it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type,omitempty"`
}

// DriftStatus is one thing on the host that differs from its plan.
type DriftStatus struct {
	// step is the step that would repair it, with its module and task, such as os/system/system/sysctls.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Step string `json:"step,omitempty"`

	// resource is what differs, such as file /etc/containerd/config.toml or unit kubelet.service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Resource string `json:"resource,omitempty"`

	// found is what is there, in a few words: a value, a state, the digest of content.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Found string `json:"found,omitempty"`

	// expected is what should be there.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Expected string `json:"expected,omitempty"`

	// diff are the first lines in which content differs, as a unified diff from what is there to what should be. It is set only
	// for content that everybody on the host may read, and that no Secret has a part of.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Diff string `json:"diff,omitempty"`
}

// ProgressStatus counts steps.
type ProgressStatus struct {
	// completedSteps is how many steps are as planned.
	// +required
	// +kubebuilder:validation:Minimum=0
	CompletedSteps *int32 `json:"completedSteps,omitempty"`

	// totalSteps is how many steps the plan has.
	// +required
	// +kubebuilder:validation:Minimum=0
	TotalSteps *int32 `json:"totalSteps,omitempty"`
}

// RunOutcome is how something that was done with a host ended.
//
// +kubebuilder:validation:Enum=Succeeded;Failed;Interrupted
type RunOutcome string

const (
	// RunSucceeded means that it was done: of Converge, that the host is as planned.
	RunSucceeded RunOutcome = "Succeeded"
	// RunFailed means that a step failed for good; of Converge, the condition HostConverged says which, why and what to do.
	RunFailed RunOutcome = "Failed"
	// RunInterrupted means that the run was stopped, by a change of the plan, a deletion or the end of the manager.
	RunInterrupted RunOutcome = "Interrupted"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmconfigs,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Host",type="string",JSONPath=".status.host.name",description="The host that is made a Node"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the bootstrap data exists"
// +kubebuilder:printcolumn:name="HostReady",type="string",JSONPath=`.status.conditions[?(@.type=="HostReady")].status`,description="Whether the host is in its desired state"
// +kubebuilder:printcolumn:name="Done",type="integer",JSONPath=".status.progress.completedSteps",description="Completed steps"
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.progress.totalSteps",description="Steps of the plan"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="HostReady")].reason`,description="Why the host is not ready",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:validation:XValidation:rule="oldSelf.?spec.?bootstrapMode.orValue('') in ['', self.?spec.?bootstrapMode.orValue('')]",message="spec.bootstrapMode: cannot be changed once the host has initialized or joined"
// +kubebuilder:validation:XValidation:rule="oldSelf.?spec.?hostRef.?name.orValue('') in ['', self.?spec.?hostRef.?name.orValue('')]",message="spec.hostRef: a KubexmConfig stays with its host"

// KubexmConfig says what one host must be.
type KubexmConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the host must be.
	// +optional
	Spec KubexmConfigSpec `json:"spec,omitempty,omitzero"`

	// status is how far the host is.
	// +optional
	Status KubexmConfigStatus `json:"status,omitempty,omitzero"`
}

// GetConditions is for Cluster API's conditions package.
func (c *KubexmConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions is for Cluster API's conditions package.
func (c *KubexmConfig) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// IsClosed reports whether the access to the host was closed for good, as its accessPolicy says.
func (c *KubexmConfig) IsClosed() bool {
	reachable := meta.FindStatusCondition(c.Status.Conditions, HostReachableCondition)
	return reachable != nil && reachable.Reason == AccessClosedReason
}

// +kubebuilder:object:root=true

// KubexmConfigList is a list of KubexmConfigs.
type KubexmConfigList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmConfigs.
	// +required
	Items []KubexmConfig `json:"items"`
}

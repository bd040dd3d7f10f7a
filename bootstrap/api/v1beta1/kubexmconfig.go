// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// KubexmConfigSpec is what one host must be. What it leaves out, and all that hosts share, is said by the Cluster's
// KubexmClusterConfig.
type KubexmConfigSpec struct {
	// The host's own kubelet, labels, taints, system, files and commands.
	spec.Node `json:",inline"`

	// ssh is how the host is reached. It is for infrastructure that does not say so itself; with KubexmMachines it has no
	// use, because their KubexmHosts say it.
	// +optional
	SSH SSH `json:"ssh,omitempty,omitzero"`

	// order says whether the host begins the control plane (or etcd on hosts of its own), or joins it. It is set by the
	// KubexmControlPlane, and never changes; nobody else should set it.
	// +optional
	Order spec.Order `json:"order,omitempty"`

	// hostRef is the host of the inventory that this is for, where it does not become a Node: instead of a Machine's. It is
	// set by the KubexmControlPlane.
	// +optional
	HostRef HostReference `json:"hostRef,omitempty,omitzero"`
}

// HostReference names a KubexmHost in the namespace of the object that names it, and says what it is for.
type HostReference struct {
	// name is the KubexmHost's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// role is what the host is for: etcd or loadbalancer.
	// +required
	Role spec.Role `json:"role,omitempty"`
}

// SSH is how hosts are reached, the same for all that are made from one template.
type SSH struct {
	// user is who logs in: root, or a user with sudo.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	User string `json:"user,omitempty"`

	// port is where sshd listens. If unset, 22.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// credentialsRef is a Secret in this namespace with how the user is known.
	// +required
	CredentialsRef CredentialsReference `json:"credentialsRef,omitempty,omitzero"`

	// hostKeys are the public keys of the hosts, one of which a host must show before anything is sent to it: fingerprints
	// as ssh-keygen -l prints them (SHA256:…), or whole keys (ssh-ed25519 AAAA…).
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=50
	// +kubebuilder:validation:items:MaxLength=8192
	HostKeys []string `json:"hostKeys,omitempty"`
}

// CredentialsReference names a Secret in the namespace of the object that names it. Its keys are those of type
// kubernetes.io/ssh-auth and more: ssh-privatekey, passphrase (of the private key), password (of the user, where there
// is no key) and sudo-password (where sudo asks for one).
type CredentialsReference struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// KubexmConfigStatus is how far the host is.
//
// +kubebuilder:validation:MinProperties=1
type KubexmConfigStatus struct {
	// conditions are Ready (whether the bootstrap data exists, which the Machine shows as BootstrapConfigReady), HostReady (the summary
	// of those that follow), DataSecretAvailable, HostReachable, PreflightPassed, HostConverged, NodeJoined, DisruptionAllowed, APIServerStopped,
	// HostReset and Paused.
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

	// converged is how many of the plan's steps are so.
	// +optional
	Converged ConvergedStatus `json:"converged,omitempty,omitzero"`

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

	// certificates are all on the host, whoever made them, by their files, each with its end, as they were when the host was last
	// looked at. Of more than fit here, these are the first to end.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Certificates []CertificateStatus `json:"certificates,omitempty"`

	// etcd is etcd as the member on the host told of it when it was last asked: with each look and run, and when somebody asks for it.
	// Hosts without a member have none.
	// +optional
	Etcd EtcdStatus `json:"etcd,omitempty,omitzero"`

	// drift is what the last look at the host found to differ from its plan, as long as it does: of more than fit here, the first. The
	// condition HostConverged sums it up.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Drift []DriftStatus `json:"drift,omitempty"`

	// lastRun is the run that is going on, or the last one.
	// +optional
	LastRun RunStatus `json:"lastRun,omitempty,omitzero"`

	// lastReboot is the last reboot of the host that was asked for, once it has ended.
	// +optional
	LastReboot RebootStatus `json:"lastReboot,omitempty,omitzero"`

	// lastEtcdSnapshot is the last snapshot of etcd that somebody has asked for on the host, once it was tried. Those are not shown
	// that a host saves by itself before it is brought to another version.
	// +optional
	LastEtcdSnapshot EtcdSnapshotStatus `json:"lastEtcdSnapshot,omitempty,omitzero"`

	// lastCertificateRecovery is the last time that key pairs of the cluster were read back from the host, once it was tried.
	// +optional
	LastCertificateRecovery CertificateRecoveryStatus `json:"lastCertificateRecovery,omitempty,omitzero"`
}

// CertificateRecoveryStatus is a recovery of key pairs that somebody has asked for. The pairs themselves are in Secrets alone.
type CertificateRecoveryStatus struct {
	// requestTime is the time in the annotation that asked for it.
	// +required
	RequestTime metav1.Time `json:"requestTime,omitempty,omitzero"`

	// endTime is when the Secrets were written, or it was given up.
	// +required
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`

	// outcome is Succeeded if all Secrets are there that were asked for, and Failed if none was written.
	// +required
	Outcome RunOutcome `json:"outcome,omitempty"`

	// message is why none was written.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// EtcdSnapshotStatus is a snapshot of etcd that somebody has asked for.
type EtcdSnapshotStatus struct {
	// requestTime is the value of the annotation that asked for it.
	// +required
	RequestTime metav1.Time `json:"requestTime,omitempty,omitzero"`

	// endTime is when it was saved, or given up.
	// +required
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`

	// outcome is Succeeded if it was saved, and Failed if not. An etcd that others run and that does not give its data away is none
	// to save.
	// +required
	Outcome RunOutcome `json:"outcome,omitempty"`

	// message is why it was not saved.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
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

	// name is what the member calls itself. One that has never started has not told it.
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

// ConvergedStatus counts steps.
type ConvergedStatus struct {
	// done is how many steps are as planned.
	// +required
	// +kubebuilder:validation:Minimum=0
	Done *int32 `json:"done,omitempty"`

	// total is how many steps the plan has.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total *int32 `json:"total,omitempty"`
}

// RunOutcome is how a run ended.
//
// +kubebuilder:validation:Enum=Succeeded;Failed;Interrupted
type RunOutcome string

const (
	// RunSucceeded means that the host is as planned.
	RunSucceeded RunOutcome = "Succeeded"
	// RunFailed means that a step failed for good; the condition HostConverged says which, why and what to do.
	RunFailed RunOutcome = "Failed"
	// RunInterrupted means that the run was stopped, by a change of the plan, a deletion or the end of the manager.
	RunInterrupted RunOutcome = "Interrupted"
)

// RunStatus is one run of a plan on the host.
type RunStatus struct {
	// startTime is when the run began.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`

	// endTime is when the run ended. It is not set while the run goes on.
	// +optional
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`

	// outcome is how the run ended. It is not set while the run goes on.
	// +optional
	Outcome RunOutcome `json:"outcome,omitempty"`

	// changed is how many steps changed something on the host.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Changed *int32 `json:"changed,omitempty"`

	// failures is how many runs in a row have failed, this one included; the wait before the next grows with it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failures *int32 `json:"failures,omitempty"`

	// restored is how many of these have put the host back to what it was before its programs were replaced. After the third, no other
	// follows until the host is to become something else, or is asked for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restored *int32 `json:"restored,omitempty"`

	// inputDigest is the digest of all that the run was to make of the host, as sha256:… What has failed for it is not held against
	// another.
	// +optional
	// +kubebuilder:validation:MinLength=71
	// +kubebuilder:validation:MaxLength=71
	InputDigest string `json:"inputDigest,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmconfigs,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Host",type="string",JSONPath=".status.host.name",description="The host that is made a Node"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the bootstrap data exists"
// +kubebuilder:printcolumn:name="HostReady",type="string",JSONPath=`.status.conditions[?(@.type=="HostReady")].status`,description="Whether the host is what it must be"
// +kubebuilder:printcolumn:name="Done",type="integer",JSONPath=".status.converged.done",description="Steps that are as planned"
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.converged.total",description="Steps of the plan"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="HostReady")].reason`,description="Why the host is not ready",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether nothing is done for now",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

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

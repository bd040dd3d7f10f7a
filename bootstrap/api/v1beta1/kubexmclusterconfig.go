// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// KubexmClusterConfigSpec is what the hosts of one cluster share, and which of them are its members. Hosts are planned from this and
// from nothing that is observed, so that a move or a backup without statuses leaves every plan as it was.
//
// A KubexmControlPlane writes all of it by server-side apply. Where another provider runs the control plane, a user writes it.
type KubexmClusterConfigSpec struct {
	// version is the version of Kubernetes of hosts that have no Machine, such as v1.36.3.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// apiServerVersion is the oldest version of Kubernetes that an API server of the cluster has. No worker gets a newer one. If unset,
	// no worker waits for the control plane's version.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	APIServerVersion string `json:"apiServerVersion,omitempty"`

	// controlPlaneEndpoint is where the API server is reached. It counts before cluster.controlPlaneEndpoint. If unset, as the
	// Cluster's spec.controlPlaneEndpoint says.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// cluster is what all hosts of the cluster share. A KubexmControlPlane writes its own spec.cluster here, with what the Cluster's
	// spec.clusterNetwork says in the place of what it says itself. What is left out has the default that its field documents.
	// +optional
	Cluster spec.Cluster `json:"cluster,omitempty,omitzero"`

	// controlPlaneRebootTimeoutSeconds is how long a reboot of a control plane host is tried, once it is asked for. If unset, 600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ControlPlaneRebootTimeoutSeconds *int32 `json:"controlPlaneRebootTimeoutSeconds,omitempty"`

	// authorities are the fingerprints of the key pairs that the cluster was made with. No host is changed while a Secret holds another.
	// A pair that is not listed is not compared.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	Authorities []AuthorityFingerprint `json:"authorities,omitempty"`

	// members are the hosts that the control plane, etcd and the load balancers consist of, each with how far it is on its way in or out.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Members []ClusterMember `json:"members,omitempty"`
}

// ClusterConfigOwner is the field manager by which a KubexmControlPlane writes all of a KubexmClusterConfig.
const ClusterConfigOwner = "kubexmcontrolplane"

// AuthorityFingerprint identifies a key pair of the cluster, or its encryption key.
type AuthorityFingerprint struct {
	// name of the pair: ca, etcd, proxy or sa, as in the names of Cluster API's Secrets; or encryption.
	// +required
	// +kubebuilder:validation:Enum=ca;etcd;proxy;sa;encryption
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10
	Name string `json:"name,omitempty"`

	// fingerprint of the pair's public key: sha256: and 64 hexadecimal digits of its SubjectPublicKeyInfo in DER. Of the encryption key,
	// the digits are an HMAC-SHA-256 by it.
	// +required
	// +kubebuilder:validation:MinLength=71
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern="^sha256:[0-9a-f]{64}$"
	Fingerprint string `json:"fingerprint,omitempty"`
}

// FingerprintOf is the fingerprint of the key pair of that name, "" if none is listed.
func (s *KubexmClusterConfigSpec) FingerprintOf(name string) string {
	for _, a := range s.Authorities {
		if a.Name == name {
			return a.Fingerprint
		}
	}
	return ""
}

// MemberPhase is how far a member is on its way into the cluster, or out of it. A member only ever goes on to a later phase.
//
//	phase     it begins when                            load balancers    etcd members, API    its own reconciler        the staying hosts
//	                                                    and kubelets      servers' etcd        does                      do
//	Joining   its KubexmConfig exists                   list it once it   list it once it has  makes it what it must be  nothing
//	                                                    has an address,   an address           (nothing before it is
//	                                                    by health checks                       listed here)
//	Serving   it was brought to a version once          as before         as before            keeps it so               nothing
//	Draining  its Machine or KubexmConfig is deleted    drop it           drop it; its etcd    ends its API server once  nothing
//	                                                                      member exists still  its Node is drained, and
//	                                                                                           says APIServerStopped
//	Removed   its Node is drained and APIServerStopped  as before         as before            waits for its hook; then  remove its etcd
//	          is there, or it had no API server                                                resets the host           member
//	(dropped) its Machine and KubexmConfig are gone     as before         as before            nothing                   nothing
//
// Joining and Serving are rendered the same: a new API server is behind the load balancers as soon as it answers, and nothing changes on
// other hosts by the change of phase. Hosts without an etcd member are never Removed, and an etcd host of its own has no API server to
// end: it goes from Joining or Serving to Removed. A Removed member's hook comes off when a staying host has observed this very list:
// its status.membersDigest is the digest of members.
//
// +kubebuilder:validation:Enum=Joining;Serving;Draining;Removed
type MemberPhase string

const (
	// MemberJoining is a host that is on its way in: it has not been brought to a version yet.
	MemberJoining MemberPhase = "Joining"
	// MemberServing is a host that does what its role says, or is repaired to do so.
	MemberServing MemberPhase = "Serving"
	// MemberDraining is a host that leaves: nothing new is sent to it, and its API server is ended.
	MemberDraining MemberPhase = "Draining"
	// MemberRemoved is a host whose etcd member must not exist.
	MemberRemoved MemberPhase = "Removed"
)

// ClusterMember is one host of the control plane, of etcd or of the load balancers.
//
// +kubebuilder:validation:XValidation:rule="self.role != 'Worker'",message="workers are no members: name hosts of the control plane, of etcd and of load balancers"
type ClusterMember struct {
	// name is the host's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// role is what the host is for: ControlPlane, Etcd or LoadBalancer.
	// +required
	Role spec.Role `json:"role,omitempty"`

	// address is where the cluster's other hosts reach it. It is not set while it is not known yet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`

	// phase is Joining, Serving, Draining or Removed.
	// +required
	Phase MemberPhase `json:"phase,omitempty"`

	// configName is the name of the host's KubexmConfig. If unset, that of any KubexmConfig whose host has the member's name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigName string `json:"configName,omitempty"`
}

// KubexmClusterConfigStatus is what goes on among the hosts. No host is planned from it.
//
// +kubebuilder:validation:MinProperties=1
type KubexmClusterConfigStatus struct {
	// turns are the hosts that are disrupted now, or were and have not settled yet. It is one list for the whole cluster, so that anyone
	// who lets another host begin has seen all that have begun.
	// +optional
	// +listType=map
	// +listMapKey=configName
	// +kubebuilder:validation:MaxItems=2048
	Turns []Turn `json:"turns,omitempty"`
}

// Turn is a host's leave to be disrupted.
type Turn struct {
	// configName is the name of the host's KubexmConfig.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigName string `json:"configName,omitempty"`

	// pool is which hosts take turns with it: ControlPlane, Etcd, LoadBalancer, or the workers of one MachineDeployment, such as
	// MachineDeployment/prod-workers.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Pool string `json:"pool,omitempty"`

	// since is when it began.
	// +required
	Since metav1.Time `json:"since,omitempty,omitzero"`
}

// TurnOf is the turn that the KubexmConfig of that name has, nil if it has none.
func (s *KubexmClusterConfigStatus) TurnOf(config string) *Turn {
	for i := range s.Turns {
		if s.Turns[i].ConfigName == config {
			return &s.Turns[i]
		}
	}
	return nil
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=kubexmclusterconfigs,shortName=kxcc,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1beta1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host",description="Where the API server is reached"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version",description="The version of hosts without a Machine"
// +kubebuilder:printcolumn:name="Members",type="string",JSONPath=".spec.members[*].name",description="Hosts of the control plane, of etcd and of load balancers"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmClusterConfig is what the hosts of one Cluster share. It has the Cluster's name and namespace.
type KubexmClusterConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the hosts share.
	// +required
	Spec KubexmClusterConfigSpec `json:"spec,omitempty,omitzero"`

	// status is what goes on among the hosts.
	// +optional
	Status KubexmClusterConfigStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// KubexmClusterConfigList is a list of KubexmClusterConfigs.
type KubexmClusterConfigList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmClusterConfigs.
	// +required
	Items []KubexmClusterConfig `json:"items"`
}

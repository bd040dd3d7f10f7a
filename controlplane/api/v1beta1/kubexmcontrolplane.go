// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// KubexmControlPlaneSpec is what a cluster's control plane and what all of its hosts must be.
//
// The rules on replicas are here and not in the webhook alone, because the scale subresource passes that by.
//
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas % 2 == 1 || has(self.cluster) && has(self.cluster.etcd) && (has(self.cluster.etcd.hosts) || has(self.cluster.etcd.type) && self.cluster.etcd.type == 'External')",fieldPath=".replicas",message="etcd runs on these Machines, and an even number of members survives no more failures than one less: use an odd number"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas <= 9 || has(self.cluster) && has(self.cluster.etcd) && (has(self.cluster.etcd.hosts) || has(self.cluster.etcd.type) && self.cluster.etcd.type == 'External')",fieldPath=".replicas",message="etcd runs on these Machines, and is slow with more than 9 members: use at most 9, or etcd elsewhere"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas == 1 || has(self.cluster) && has(self.cluster.loadBalancer) && has(self.cluster.loadBalancer.type) && self.cluster.loadBalancer.type != 'None'",fieldPath=".replicas",message="several control plane Machines need a load balancer: set cluster.loadBalancer.type"
// +kubebuilder:validation:XValidation:rule="!has(self.controlPlaneEndpoint) || has(self.controlPlaneEndpoint.host) && has(self.controlPlaneEndpoint.port)",fieldPath=".controlPlaneEndpoint",message="give host and port, or neither"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.controlPlaneEndpoint) || has(self.controlPlaneEndpoint) && self.controlPlaneEndpoint == oldSelf.controlPlaneEndpoint",fieldPath=".controlPlaneEndpoint",message="the endpoint is in certificates and on all hosts, and stays: set it back"
// +kubebuilder:validation:XValidation:rule="!has(self.cluster) || !has(self.cluster.controlPlaneEndpoint) || !has(self.cluster.controlPlaneEndpoint.port)",fieldPath=".cluster.controlPlaneEndpoint.port",message="the port is written in spec.controlPlaneEndpoint alone: remove it"
type KubexmControlPlaneSpec struct {
	// replicas is how many control plane Machines there are. If unset, 1. It is odd and at most 9 where etcd runs on them; more than one
	// need a load balancer (cluster.loadBalancer).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=15
	Replicas *int32 `json:"replicas,omitempty"`

	// version is the version of Kubernetes, such as v1.36.3. A higher one upgrades the control plane, by no more than one minor
	// version at a time; one that is lower than what a Machine has is refused. How the Machines get there is for rollout.strategy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// controlPlaneEndpoint is where the API server is reached: host is a name or an address. Give the port, too, such as 6443.
	// Cluster API copies it to the Cluster. If unset, the Cluster's counts, which the infrastructure cluster says. With a load balancer
	// of the type Keepalived or KubeVIP, it is the virtual address, or a name for cluster.controlPlaneEndpoint.address. Once set, it stays.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// machineTemplate is what the control plane's Machines are made from.
	// +required
	MachineTemplate MachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// cluster is what all hosts of this cluster share, its workers included.
	//
	// Where the Cluster object says the same, it counts: spec.clusterNetwork comes before cluster.network.podCIDRs,
	// cluster.network.serviceCIDRs and cluster.dns.clusterDomain. What neither says has the default that its field documents; defaults
	// are not written here.
	// +optional
	Cluster spec.Cluster `json:"cluster,omitempty,omitzero"`

	// node is what each of the control plane's own hosts is, beside what all hosts share: the spec of their KubexmConfigs, without what
	// is one host's.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapMode) && !has(self.hostRef)",message="bootstrapMode and hostRef are one host's, and these are for many: remove them"
	Node bootstrapv1.KubexmConfigSpec `json:"node,omitempty,omitzero"`

	// rollout says when Machines are replaced, and how changes reach them.
	// +optional
	Rollout Rollout `json:"rollout,omitempty,omitzero"`

	// remediation says what becomes of unhealthy Machines.
	// +optional
	Remediation Remediation `json:"remediation,omitempty,omitzero"`

	// machineNaming says how Machines are named.
	// +optional
	MachineNaming MachineNaming `json:"machineNaming,omitempty,omitzero"`
}

// MachineTemplate is what the control plane's Machines are made from.
type MachineTemplate struct {
	// metadata are labels and annotations of Machines, KubexmConfigs and infrastructure machines. Changes reach those
	// that exist.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the Machines are.
	// +required
	Spec MachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// MachineTemplateSpec is what the control plane's Machines are. All but infrastructureRef reaches Machines that exist.
type MachineTemplateSpec struct {
	// infrastructureRef is the template that infrastructure machines are made from, in this namespace. Machines that were made
	// from another one are replaced.
	// +required
	InfrastructureRef clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	// readinessGates are conditions of a Machine, set by others, that it needs to be Ready.
	// +optional
	// +listType=map
	// +listMapKey=conditionType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ReadinessGates []clusterv1.MachineReadinessGate `json:"readinessGates,omitempty"`

	// deletion says how long the deletion of a Machine waits for its Node.
	// +optional
	Deletion MachineDeletion `json:"deletion,omitempty,omitzero"`

	// taints are the Node taints that Cluster API keeps. Its feature gate MachineTaintPropagation must be on.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// MachineDeletion says how long the deletion of a Machine waits for its Node.
//
// +kubebuilder:validation:MinProperties=1
type MachineDeletion struct {
	// nodeDrainTimeoutSeconds is how long the Node is drained at most. If unset or 0, until it is done.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`

	// nodeVolumeDetachTimeoutSeconds is how long volumes are waited for at most. If unset or 0, until they are detached.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds,omitempty"`

	// nodeDeletionTimeoutSeconds is how long the deletion of the Node is tried. If unset, as Machines have it; if 0, until it is done.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// KubexmControlPlaneStatus is what the control plane is.
//
// +kubebuilder:validation:MinProperties=1
type KubexmControlPlaneStatus struct {
	// conditions are Available, Initialized, CertificatesAvailable, ControlPlaneComponentsHealthy, EtcdClusterHealthy,
	// MachinesReady, MachinesUpToDate, RollingOut, ScalingUp, ScalingDown, Remediating, DisruptionAllowed, Deleting and
	// Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what Cluster API waits for before other Machines are made.
	// +optional
	Initialization KubexmControlPlaneInitializationStatus `json:"initialization,omitempty,omitzero"`

	// selector selects the control plane's Machines, in the syntax of query parameters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// replicas is how many control plane Machines there are.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas is how many of them have the condition Ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many of them have the condition Available.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// upToDateReplicas is how many of them have the condition UpToDate.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// versions are the versions of Kubernetes that Machines have, the oldest first. No worker is made before it is set.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Versions []clusterv1.StatusVersion `json:"versions,omitempty"`

	// version is the oldest of versions, for those who do not read these yet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// lastRemediation is the last replacement of an unhealthy Machine.
	// +optional
	LastRemediation LastRemediation `json:"lastRemediation,omitempty,omitzero"`

	// observedGeneration is the generation of this object that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// KubexmControlPlaneInitializationStatus is part of the contract with Cluster API.
//
// +kubebuilder:validation:MinProperties=1
type KubexmControlPlaneInitializationStatus struct {
	// controlPlaneInitialized is true from when the API server first takes requests and hosts can join. It stays true.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmcontrolplanes,shortName=kxcp,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the control plane works"
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".spec.replicas",description="Desired Machines"
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.replicas",description="Existing Machines"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas",description="Machines that are Ready"
// +kubebuilder:printcolumn:name="Up-to-date",type="integer",JSONPath=".status.upToDateReplicas",description="Machines that are UpToDate"
// +kubebuilder:printcolumn:name="Initialized",type="boolean",JSONPath=".status.initialization.controlPlaneInitialized",description="Whether the API server has taken requests"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version",description="The version of Kubernetes"

// KubexmControlPlane is a cluster's control plane, and what all hosts of the cluster share.
type KubexmControlPlane struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the control plane must be.
	// +required
	Spec KubexmControlPlaneSpec `json:"spec,omitempty,omitzero"`

	// status is what the control plane is.
	// +optional
	Status KubexmControlPlaneStatus `json:"status,omitempty,omitzero"`
}

// GetConditions is for Cluster API's conditions package.
func (c *KubexmControlPlane) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions is for Cluster API's conditions package.
func (c *KubexmControlPlane) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// KubexmControlPlaneList is a list of KubexmControlPlanes.
type KubexmControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmControlPlanes.
	// +required
	Items []KubexmControlPlane `json:"items"`
}

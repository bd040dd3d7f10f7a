// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ProviderIDPrefix begins the provider ID of every host; its namespace, a slash and its name follow.
const ProviderIDPrefix = "kubexm://"

// KubexmMachineSpec says which host a Machine may have.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || has(self.providerID) && self.providerID == oldSelf.providerID",fieldPath=".providerID",message="cannot be changed once it is set: set it back"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || has(self.hostName) == has(oldSelf.hostName) && (!has(self.hostName) || self.hostName == oldSelf.hostName)",fieldPath=".hostName",message="the Machine has its host: delete the Machine, and make another to choose another host"
// +kubebuilder:validation:XValidation:rule="!has(self.hostName) || !has(self.hostSelector)",fieldPath=".hostName",message="the name of a host and a selector of hosts exclude each other: remove hostName or hostSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.hostName) || !has(self.preferences)",fieldPath=".preferences",message="hostName names the one host to claim: remove hostName or preferences"
type KubexmMachineSpec struct {
	// providerID is kubexm://namespace/host. It is set when a host is claimed, and never changes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// hostSelector selects KubexmHosts of this namespace by their labels. If unset, any.
	// +optional
	HostSelector *metav1.LabelSelector `json:"hostSelector,omitempty"`

	// hostName is the one KubexmHost to claim. If unset, any that the selector selects.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	HostName string `json:"hostName,omitempty"`

	// requirements are how much a host must have at least. A host of which that is not known is not claimed. Only a host that is to be
	// claimed is compared with it: one that the Machine has stays the Machine's.
	// +optional
	Requirements HostCapacity `json:"requirements,omitempty,omitzero"`

	// preferences say which of the hosts that may be claimed are preferred: of those in the failure domains with the fewest Machines of
	// the same control plane or MachineDeployment, one with the highest sum of weights, and of these the one that is free the longest.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Preferences []HostPreference `json:"preferences,omitempty"`
}

// HostPreference prefers some hosts to others.
type HostPreference struct {
	// weight is how much, from 1 to 100.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight,omitempty"`

	// selector selects the KubexmHosts by their labels.
	// +required
	Selector metav1.LabelSelector `json:"selector,omitempty,omitzero"`
}

// KubexmMachineStatus is which host the Machine has.
//
// +kubebuilder:validation:MinProperties=1
type KubexmMachineStatus struct {
	// conditions are Ready (the summary, which the Machine shows as InfrastructureReady), HostClaimed, Deleting and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what Cluster API waits for before it takes over addresses and provider ID.
	// +optional
	Initialization KubexmMachineInitializationStatus `json:"initialization,omitempty,omitzero"`

	// hostRef is the host that the Machine has. It is set once the claim stands and the host is marked as in use; before
	// that nobody may touch the host.
	// +optional
	HostRef HostReference `json:"hostRef,omitempty,omitzero"`

	// addresses are the host's name (Hostname), its address (ExternalIP) and its internal addresses (InternalIP, the
	// Node's first).
	// +optional
	Addresses clusterv1.MachineAddresses `json:"addresses,omitempty"`

	// failureDomain is that of the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// observedGeneration is the generation of this object that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// KubexmMachineInitializationStatus is part of the contract with Cluster API.
//
// +kubebuilder:validation:MinProperties=1
type KubexmMachineInitializationStatus struct {
	// provisioned is true when the Machine has a host and bootstrap data.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// HostReference names a KubexmHost in the namespace of the object that names it.
type HostReference struct {
	// name is the KubexmHost's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmmachines,shortName=kxm,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=`.metadata.ownerReferences[?(@.kind=="Machine")].name`,description="The Machine"
// +kubebuilder:printcolumn:name="Host",type="string",JSONPath=".status.hostRef.name",description="The host that the Machine has"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the Machine has a host"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why not",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="ProviderID",type="string",JSONPath=".spec.providerID",description="The provider ID",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmMachine is one Machine's claim on a host.
type KubexmMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which host the Machine may have.
	// +optional
	Spec KubexmMachineSpec `json:"spec,omitempty,omitzero"`

	// status is which host the Machine has.
	// +optional
	Status KubexmMachineStatus `json:"status,omitempty,omitzero"`
}

// ProviderID is the provider ID of a host.
func ProviderID(host *KubexmHost) string {
	return ProviderIDPrefix + host.Namespace + "/" + host.Name
}

// GetConditions is for Cluster API's conditions package.
func (m *KubexmMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions is for Cluster API's conditions package.
func (m *KubexmMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// KubexmMachineList is a list of KubexmMachines.
type KubexmMachineList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmMachines.
	// +required
	Items []KubexmMachine `json:"items"`
}

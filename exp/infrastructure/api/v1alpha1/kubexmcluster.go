// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KubexmClusterSpec is what a cluster has beside its hosts.
type KubexmClusterSpec struct {
	// controlPlaneEndpoint is where the API server is reached. What is unset is taken from the Cluster, or else becomes
	// the IPv4 address of the first control plane Machine's host, and port 6443. A host, once set, never changes.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.host) || has(self.host) && self.host == oldSelf.host",fieldPath=".host",message="cannot be changed once it is set: set it back"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.port) || has(self.port) && self.port == oldSelf.port",fieldPath=".port",message="cannot be changed once it is set: set it back"
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// failureDomains are offered to the control plane to choose from. If unset, each Machine is given a host from the
	// failure domain with the fewest of the cluster's Machines, which is what most clusters want.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
}

// KubexmClusterStatus is how far the cluster's infrastructure is.
//
// +kubebuilder:validation:MinProperties=1
type KubexmClusterStatus struct {
	// conditions are Ready (the summary, which the Cluster shows as InfrastructureReady), EndpointAvailable, Deleting and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what Cluster API waits for before the control plane is made.
	// +optional
	Initialization KubexmClusterInitializationStatus `json:"initialization,omitempty,omitzero"`

	// failureDomains are those of the spec; the Cluster takes them from here.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// observedGeneration is the generation of this object that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// KubexmClusterInitializationStatus is part of the contract with Cluster API.
//
// +kubebuilder:validation:MinProperties=1
type KubexmClusterInitializationStatus struct {
	// provisioned is true at once: hosts exist before the cluster. It says nothing of the endpoint.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmclusters,shortName=kxcl,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host",description="Where the API server is reached"
// +kubebuilder:printcolumn:name="Port",type="integer",JSONPath=".spec.controlPlaneEndpoint.port",description="The API server's port"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the infrastructure is there"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmCluster is a cluster's endpoint and failure domains.
type KubexmCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the cluster has beside its hosts.
	// +optional
	Spec KubexmClusterSpec `json:"spec,omitempty,omitzero"`

	// status is how far the cluster's infrastructure is.
	// +optional
	Status KubexmClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions is for Cluster API's conditions package.
func (c *KubexmCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions is for Cluster API's conditions package.
func (c *KubexmCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// KubexmClusterList is a list of KubexmClusters.
type KubexmClusterList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmClusters.
	// +required
	Items []KubexmCluster `json:"items"`
}

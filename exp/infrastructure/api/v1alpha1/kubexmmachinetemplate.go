// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KubexmMachineTemplateSpec holds the template. It cannot be changed: make a new KubexmMachineTemplate and refer to that.
type KubexmMachineTemplateSpec struct {
	// template is what KubexmMachines are made from. If unset, they take any host.
	// +optional
	Template KubexmMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// KubexmMachineTemplateResource is what KubexmMachines are made from.
type KubexmMachineTemplateResource struct {
	// metadata are labels and annotations of the KubexmMachines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the KubexmMachines' spec. It must not have a providerID.
	// +optional
	Spec KubexmMachineSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmmachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="ClusterClass",type="string",JSONPath=`.metadata.ownerReferences[?(@.kind=="ClusterClass")].name`,description="The ClusterClass that has this template"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmMachineTemplate is what KubexmMachines are made from.
type KubexmMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the template.
	// +optional
	Spec KubexmMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// KubexmMachineTemplateList is a list of KubexmMachineTemplates.
type KubexmMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmMachineTemplates.
	// +required
	Items []KubexmMachineTemplate `json:"items"`
}

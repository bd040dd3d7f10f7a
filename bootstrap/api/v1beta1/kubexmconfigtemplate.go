// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KubexmConfigTemplateSpec holds the template. It cannot be changed: make a new KubexmConfigTemplate and refer to that.
type KubexmConfigTemplateSpec struct {
	// template is what KubexmConfigs are made from. If unset, hosts have nothing of their own.
	// +optional
	Template KubexmConfigTemplateResource `json:"template,omitempty,omitzero"`
}

// KubexmConfigTemplateResource is what KubexmConfigs are made from.
type KubexmConfigTemplateResource struct {
	// metadata are labels and annotations of the KubexmConfigs.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the KubexmConfigs' spec, without what is one host's: bootstrapMode and hostRef.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapMode) && !has(self.hostRef)",message="bootstrapMode and hostRef are one host's, and a template is for many: remove them"
	Spec KubexmConfigSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmconfigtemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="ClusterClass",type="string",JSONPath=`.metadata.ownerReferences[?(@.kind=="ClusterClass")].name`,description="The ClusterClass that has this template"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmConfigTemplate is what KubexmConfigs are made from.
type KubexmConfigTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the template.
	// +optional
	Spec KubexmConfigTemplateSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// KubexmConfigTemplateList is a list of KubexmConfigTemplates.
type KubexmConfigTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmConfigTemplates.
	// +required
	Items []KubexmConfigTemplate `json:"items"`
}

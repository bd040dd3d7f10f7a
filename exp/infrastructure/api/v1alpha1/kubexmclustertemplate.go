// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KubexmClusterTemplateSpec holds the template. It cannot be changed: make a new KubexmClusterTemplate and refer to that.
type KubexmClusterTemplateSpec struct {
	// template is what KubexmClusters are made from. If unset, they have what follows from their hosts.
	// +optional
	Template KubexmClusterTemplateResource `json:"template,omitempty,omitzero"`
}

// KubexmClusterTemplateResource is what KubexmClusters are made from.
type KubexmClusterTemplateResource struct {
	// metadata are labels and annotations of the KubexmClusters.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the KubexmClusters' spec. A controlPlaneEndpoint is one cluster's: patches of a ClusterClass set it, by a variable.
	// +optional
	Spec KubexmClusterSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1alpha1"
// +kubebuilder:printcolumn:name="ClusterClass",type="string",JSONPath=`.metadata.ownerReferences[?(@.kind=="ClusterClass")].name`,description="The ClusterClass that has this template"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmClusterTemplate is what KubexmClusters are made from.
type KubexmClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the template.
	// +optional
	Spec KubexmClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// KubexmClusterTemplateList is a list of KubexmClusterTemplates.
type KubexmClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmClusterTemplates.
	// +required
	Items []KubexmClusterTemplate `json:"items"`
}

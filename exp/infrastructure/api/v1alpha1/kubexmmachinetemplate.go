// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
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

// KubexmMachineTemplateStatus is what Machines made from the template have, by which a cluster autoscaler scales from zero.
//
// +kubebuilder:validation:MinProperties=1
type KubexmMachineTemplateStatus struct {
	// capacity is how much each of the hosts has at least that such a Machine may get, now or later: the least of all that is known.
	// It is absent while nothing is known of any.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo is what all of these hosts have in common.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`

	// observedGeneration is the generation of this object that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// NodeInfo is what a Node would say of itself.
//
// +kubebuilder:validation:MinProperties=1
type NodeInfo struct {
	// architecture is amd64 or arm64. It is absent where hosts differ, or nothing is known of it.
	// +optional
	Architecture spec.Arch `json:"architecture,omitempty"`

	// operatingSystem is linux.
	// +optional
	// +kubebuilder:validation:Enum=linux
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
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

	// status is what Machines made from the template have.
	// +optional
	Status KubexmMachineTemplateStatus `json:"status,omitempty,omitzero"`
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

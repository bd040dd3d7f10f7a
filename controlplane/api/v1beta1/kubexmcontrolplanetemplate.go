// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// KubexmControlPlaneTemplateSpec holds the template. It cannot be changed: make a new one and refer to that.
type KubexmControlPlaneTemplateSpec struct {
	// template is what KubexmControlPlanes are made from. If unset, everything has its default.
	// +optional
	Template KubexmControlPlaneTemplateResource `json:"template,omitempty,omitzero"`
}

// KubexmControlPlaneTemplateResource is what KubexmControlPlanes are made from.
//
// +kubebuilder:validation:MinProperties=1
type KubexmControlPlaneTemplateResource struct {
	// metadata are labels and annotations of the KubexmControlPlanes.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the KubexmControlPlanes' spec, without what a Cluster's topology says.
	// +optional
	Spec KubexmControlPlaneTemplateResourceSpec `json:"spec,omitempty,omitzero"`
}

// KubexmControlPlaneTemplateResourceSpec is KubexmControlPlaneSpec without what a Cluster's topology says: replicas,
// version, infrastructureRef and readinessGates.
//
// +kubebuilder:validation:MinProperties=1
type KubexmControlPlaneTemplateResourceSpec struct {
	// controlPlaneEndpoint is where the API server is reached: host is a name or an address. Give the port, too, such as 6443.
	// Cluster API copies it to the Cluster. If unset, the Cluster's counts, which the infrastructure cluster says. With a load balancer
	// of the type Keepalived or KubeVIP, it is the virtual address, or a name for cluster.controlPlaneEndpoint.address. Once set, it stays.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// machineTemplate is what the control plane's Machines are made from.
	// +optional
	MachineTemplate TemplateMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// cluster is what all hosts of a cluster share, its workers included.
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

// TemplateMachineTemplate is a MachineTemplate in a KubexmControlPlaneTemplate.
//
// +kubebuilder:validation:MinProperties=1
type TemplateMachineTemplate struct {
	// metadata are labels and annotations of Machines, KubexmConfigs and infrastructure machines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the Machines are.
	// +optional
	Spec TemplateMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// TemplateMachineTemplateSpec is a MachineTemplateSpec in a KubexmControlPlaneTemplate.
//
// +kubebuilder:validation:MinProperties=1
type TemplateMachineTemplateSpec struct {
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

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmcontrolplanetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="ClusterClass",type="string",JSONPath=`.metadata.ownerReferences[?(@.kind=="ClusterClass")].name`,description="The ClusterClass that has this template"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmControlPlaneTemplate is what KubexmControlPlanes are made from.
type KubexmControlPlaneTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the template.
	// +optional
	Spec KubexmControlPlaneTemplateSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// KubexmControlPlaneTemplateList is a list of KubexmControlPlaneTemplates.
type KubexmControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmControlPlaneTemplates.
	// +required
	Items []KubexmControlPlaneTemplate `json:"items"`
}

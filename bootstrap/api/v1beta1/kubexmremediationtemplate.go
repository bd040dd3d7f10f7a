// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KubexmRemediationTemplateSpec holds the template. It can be changed: what is made from it later is as it says then.
type KubexmRemediationTemplateSpec struct {
	// template is what KubexmRemediations are made from. If unset, all of their spec is as if unset.
	// +optional
	Template KubexmRemediationTemplateResource `json:"template,omitempty,omitzero"`
}

// KubexmRemediationTemplateResource is what KubexmRemediations are made from.
type KubexmRemediationTemplateResource struct {
	// metadata are labels and annotations of the KubexmRemediations.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the KubexmRemediations' spec.
	// +optional
	Spec KubexmRemediationSpec `json:"spec,omitempty,omitzero"`
}

// Nobody owns such a template, and so clusterctl moves it because of its kind.

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmremediationtemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1beta1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Converge",type="integer",JSONPath=".spec.template.spec.convergeTimeoutSeconds",description="Seconds for converging to help, if not 300"
// +kubebuilder:printcolumn:name="Reboot",type="integer",JSONPath=".spec.template.spec.rebootTimeoutSeconds",description="Seconds for a reboot to help, if not 600"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmRemediationTemplate is what a MachineHealthCheck makes KubexmRemediations from, for the workers that it finds unhealthy: its
// spec.remediation.templateRef names it. It is not for control plane Machines, which their KubexmControlPlane remediates itself.
type KubexmRemediationTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the template.
	// +optional
	Spec KubexmRemediationTemplateSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// KubexmRemediationTemplateList is a list of KubexmRemediationTemplates.
type KubexmRemediationTemplateList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmRemediationTemplates.
	// +required
	Items []KubexmRemediationTemplate `json:"items"`
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// KubexmRemediationSpec says what is tried with the host of an unhealthy Machine before that is replaced, and for how long.
type KubexmRemediationSpec struct {
	// convergeTimeoutSeconds is how long the Machine has to become healthy after its host was asked to be brought to what it must be
	// once more; only then is the host rebooted, or the Machine replaced. If unset, 300; if 0, that is not asked for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConvergeTimeoutSeconds *int32 `json:"convergeTimeoutSeconds,omitempty"`

	// rebootTimeoutSeconds is how long the Machine has to become healthy after its host was asked to reboot, which has to come back in
	// that time, too; only then is it replaced. If unset, 600; if 0, the host is not rebooted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RebootTimeoutSeconds *int32 `json:"rebootTimeoutSeconds,omitempty"`

	// minHealthyPeriodSeconds is after what time a Machine that is unhealthy again has something else. What was tried with its host
	// later than that before this was made is not tried again, and the next follows. If unset, 3600; if 0, all is tried again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinHealthyPeriodSeconds *int32 `json:"minHealthyPeriodSeconds,omitempty"`
}

// defaultMinHealthy is after what time an unhealthy Machine has something else, where nothing is said.
const defaultMinHealthy = time.Hour

// ConvergeTimeout is convergeTimeoutSeconds, or what it is if unset.
func (s *KubexmRemediationSpec) ConvergeTimeout() time.Duration {
	return seconds(s.ConvergeTimeoutSeconds, ConvergeTimeout)
}

// RebootTimeout is rebootTimeoutSeconds, or what it is if unset.
func (s *KubexmRemediationSpec) RebootTimeout() time.Duration {
	return seconds(s.RebootTimeoutSeconds, RebootTimeout)
}

// MinHealthyPeriod is minHealthyPeriodSeconds, or what it is if unset.
func (s *KubexmRemediationSpec) MinHealthyPeriod() time.Duration {
	return seconds(s.MinHealthyPeriodSeconds, defaultMinHealthy)
}

func seconds(n *int32, otherwise time.Duration) time.Duration {
	return time.Duration(ptr.Deref(n, int32(otherwise/time.Second))) * time.Second
}

// KubexmRemediationStatus is what was tried with the host, and what it waits for.
//
// +kubebuilder:validation:MinProperties=1
type KubexmRemediationStatus struct {
	// conditions are Remediating and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of this object that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastConvergeTime is when the host was asked to be brought to what it must be, because of what ails the Machine.
	// +optional
	LastConvergeTime metav1.Time `json:"lastConvergeTime,omitempty,omitzero"`

	// lastRebootTime is when the host was asked to reboot, because of what ails the Machine.
	// +optional
	LastRebootTime metav1.Time `json:"lastRebootTime,omitempty,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmremediations,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="The Cluster"
// +kubebuilder:printcolumn:name="Remediating",type="string",JSONPath=`.status.conditions[?(@.type=="Remediating")].status`,description="Whether something is done with the Machine of this name"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Remediating")].reason`,description="What, or why not"
// +kubebuilder:printcolumn:name="Converge",type="date",JSONPath=".status.lastConvergeTime",description="Time since a converge was requested"
// +kubebuilder:printcolumn:name="Reboot",type="date",JSONPath=".status.lastRebootTime",description="Time since a reboot was requested"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=`.status.conditions[?(@.type=="Remediating")].message`,description="What it waits for",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmRemediation repairs the host of one unhealthy Machine, and has the Machine replaced if that does not help. A MachineHealthCheck
// makes it from a KubexmRemediationTemplate, under the Machine's name, and deletes it when the Machine is healthy.
type KubexmRemediation struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata. The Machine owns it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is tried, and for how long.
	// +optional
	Spec KubexmRemediationSpec `json:"spec,omitempty,omitzero"`

	// status is what was tried.
	// +optional
	Status KubexmRemediationStatus `json:"status,omitempty,omitzero"`
}

// GetConditions is for Cluster API's conditions package.
func (r *KubexmRemediation) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions is for Cluster API's conditions package.
func (r *KubexmRemediation) SetConditions(conditions []metav1.Condition) {
	r.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// KubexmRemediationList is a list of KubexmRemediations.
type KubexmRemediationList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmRemediations.
	// +required
	Items []KubexmRemediation `json:"items"`
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Rollout says when Machines are replaced, and how changes reach them. What spec.cluster and spec.node say never replaces a
// Machine: its host is updated in place.
//
// +kubebuilder:validation:MinProperties=1
type Rollout struct {
	// before replaces Machines before something ends.
	// +optional
	Before RolloutBefore `json:"before,omitempty,omitzero"`

	// after is a time, such as 2027-01-31T22:00:00Z. From then on, Machines that are older than it are replaced.
	// +optional
	After metav1.Time `json:"after,omitempty,omitzero"`

	// strategy is how changes reach the Machines.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty,omitzero"`
}

// RolloutBefore says before what Machines are replaced.
//
// +kubebuilder:validation:MinProperties=1
type RolloutBefore struct {
	// certificatesExpiryDays is how many days before one of its certificates ends a Machine is replaced. Those count that are of the
	// type Component in the status of its KubexmConfig, but not one that ends with its authority: another would not last longer.
	// Certificates are renewed in place before that, unless cluster.certificates says otherwise.
	// +optional
	// +kubebuilder:validation:Minimum=7
	// +kubebuilder:validation:Maximum=3650
	CertificatesExpiryDays int32 `json:"certificatesExpiryDays,omitempty"`
}

// RolloutStrategyType is how changes reach the Machines.
//
// +kubebuilder:validation:Enum=RollingUpdate;InPlace
type RolloutStrategyType string

const (
	// RollingUpdateStrategy replaces Machines, one after the other.
	RollingUpdateStrategy RolloutStrategyType = "RollingUpdate"
	// InPlaceStrategy updates the hosts in place to another version of Kubernetes, one after the other. Machines are
	// replaced for all other reasons.
	InPlaceStrategy RolloutStrategyType = "InPlace"
)

// RolloutStrategy is how changes reach the Machines.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.inPlace) || has(self.type) && self.type == 'InPlace'",fieldPath=".inPlace",message="only for in-place updates: set type to InPlace, or remove it"
type RolloutStrategy struct {
	// type is RollingUpdate, which replaces Machines, or InPlace, by which their hosts are updated in place.
	// If unset, RollingUpdate.
	// +optional
	Type RolloutStrategyType `json:"type,omitempty"`

	// rollingUpdate is how Machines are replaced, whatever the type.
	// +optional
	RollingUpdate RollingUpdate `json:"rollingUpdate,omitempty,omitzero"`

	// inPlace is how hosts are updated in place. It is for the type InPlace.
	// +optional
	InPlace InPlace `json:"inPlace,omitempty,omitzero"`
}

// InPlace is how hosts are updated in place.
//
// +kubebuilder:validation:MinProperties=1
type InPlace struct {
	// canary is what all other hosts wait for when the first one is updated.
	// +optional
	Canary Canary `json:"canary,omitempty,omitzero"`
}

// Canary is what hosts wait for when the first one is updated in place.
//
// +kubebuilder:validation:MinProperties=1
type Canary struct {
	// approval is Required, where somebody has to approve that the others are updated, or None. If unset, None.
	// +optional
	Approval spec.Approval `json:"approval,omitempty"`

	// settleSeconds is how long the first host must have had the version. The control plane is healthy, or no other host is updated.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	SettleSeconds int32 `json:"settleSeconds,omitempty"`
}

// RollingUpdate is how Machines are replaced.
//
// +kubebuilder:validation:MinProperties=1
type RollingUpdate struct {
	// maxSurge is how many Machines there may be beside replicas: 1, where a new one is made before an old one goes, which
	// needs a host to spare; or 0, where an old one goes first, which needs three replicas. If unset, 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	MaxSurge *int32 `json:"maxSurge,omitempty"`
}

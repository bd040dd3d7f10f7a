// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Remediation says what becomes of Machines that a MachineHealthCheck has found unhealthy: their hosts are brought to what they
// must be once more; if that does not help, they are rebooted; if that does not help either, the Machines are replaced.
//
// +kubebuilder:validation:MinProperties=1
type Remediation struct {
	// convergeTimeoutSeconds is how long a Machine has to become healthy after its host was asked to be brought to what it must be
	// once more; only then is the host rebooted, or the Machine replaced. If unset, 300; if 0, that is done at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConvergeTimeoutSeconds *int32 `json:"convergeTimeoutSeconds,omitempty"`

	// rebootTimeoutSeconds is how long a Machine has to become healthy after its host was rebooted, which has to come back in that
	// time, too; only then is it replaced. A host is rebooted where etcd keeps its quorum and the API server answers without
	// it. If unset, 600; if 0, no host is rebooted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RebootTimeoutSeconds *int32 `json:"rebootTimeoutSeconds,omitempty"`

	// maxRetry is how often the successor of an unhealthy Machine is replaced that is unhealthy itself, and its successor, and so
	// on. If unset, for ever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRetry *int32 `json:"maxRetry,omitempty"`

	// retryPeriodSeconds is how long to wait before such a successor is replaced. If unset, it is replaced at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RetryPeriodSeconds *int32 `json:"retryPeriodSeconds,omitempty"`

	// minHealthyPeriodSeconds is after what time a successor that is unhealthy has nothing to do with the Machine before it, and
	// counting starts again. If unset, 3600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinHealthyPeriodSeconds *int32 `json:"minHealthyPeriodSeconds,omitempty"`
}

// defaultRebootTimeout is more than the firmware of a large server takes, and the cluster lives on without the host meanwhile.
const defaultRebootTimeout = 10 * time.Minute

// RebootTimeout is rebootTimeoutSeconds, or what it is if unset.
func (r *Remediation) RebootTimeout() time.Duration {
	if r.RebootTimeoutSeconds == nil {
		return defaultRebootTimeout
	}
	return time.Duration(*r.RebootTimeoutSeconds) * time.Second
}

// LastRemediation is the last replacement of an unhealthy Machine.
type LastRemediation struct {
	// machine is the name of the Machine that was unhealthy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Machine string `json:"machine,omitempty"`

	// time is when its replacement began.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"`

	// retryCount is how many Machines before it were replaced, each soon after it was made.
	// +required
	// +kubebuilder:validation:Minimum=0
	RetryCount *int32 `json:"retryCount,omitempty"`
}

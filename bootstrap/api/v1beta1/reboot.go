// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RebootAnnotation on a KubexmConfig has its host rebooted, unless it has booted since, and brought to what it must be then. Its value
// is when that was asked for, such as 2026-11-21T12:00:00Z. It is tried until spec.remediation.rebootTimeoutSeconds of the
// KubexmControlPlane have passed since then, or for a worker spec.rebootTimeoutSeconds of its KubexmRemediation.
const RebootAnnotation = "bootstrap.cluster.x-k8s.io/reboot"

// RebootTimeout is how long a reboot is tried where neither of them says anything, or hosts are not rebooted unless it is asked for.
const RebootTimeout = 10 * time.Minute

// RebootingReason of HostConverged means that the host is being rebooted.
const RebootingReason = "Rebooting"

// RebootStatus is one reboot of the host.
type RebootStatus struct {
	// requestTime is the value of the annotation that asked for it.
	// +required
	RequestTime metav1.Time `json:"requestTime,omitempty,omitzero"`

	// endTime is when the host answered again, or was given up.
	// +required
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`

	// outcome is Succeeded if the host has booted, and Failed if it could not be told to or has not come back.
	// +required
	Outcome RunOutcome `json:"outcome,omitempty"`
}

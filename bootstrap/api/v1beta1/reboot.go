// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "time"

// RebootAnnotation on a KubexmConfig has its host rebooted, unless it has booted since, and brought to what it must be then. Its value
// is when that was asked for, such as 2026-11-21T12:00:00Z. It is tried until spec.remediation.rebootTimeoutSeconds of the
// KubexmControlPlane have passed since then, or for a worker spec.rebootTimeoutSeconds of its KubexmRemediation.
const RebootAnnotation = "bootstrap.cluster.x-k8s.io/reboot"

// MachineResetAnnotation on a KubexmConfig says when the machine of its host was last reset by its management controller, or was about to
// be. The bootstrap provider writes it, so that a machine is not reset again while it boots. MachineResetRefused stands behind the time if
// the controller refused, or could not be asked: the machine was not reset then, and nothing boots.
const (
	MachineResetAnnotation = "bootstrap.cluster.x-k8s.io/machine-reset"
	MachineResetRefused    = " Refused"
)

// RebootTimeout is how long a reboot is tried where neither of them says anything, or hosts are not rebooted unless it is asked for.
const RebootTimeout = 10 * time.Minute

// RebootingReason of HostConverged means that the host is being rebooted.
const RebootingReason = "Rebooting"

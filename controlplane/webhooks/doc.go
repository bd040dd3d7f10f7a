// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks fills and refuses objects of the control plane provider. What it does is in pure functions.
package webhooks

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// SetupWithManager serves the webhooks of all kinds of the provider.
func SetupWithManager(mgr ctrl.Manager) error {
	return errors.Join(
		controlPlane.Register(mgr, &controlplanev1.KubexmControlPlane{}),
		controlPlaneTemplate.Register(mgr, &controlplanev1.KubexmControlPlaneTemplate{}),
	)
}

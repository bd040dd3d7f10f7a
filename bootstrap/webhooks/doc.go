// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks refuses objects of the bootstrap provider that cannot work. What it checks is in pure functions.
package webhooks

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// SetupWithManager serves the webhooks of all kinds of the provider.
func SetupWithManager(mgr ctrl.Manager) error {
	return errors.Join(
		clusterConfig.Register(mgr, &bootstrapv1.KubexmClusterConfig{}),
		config.Register(mgr, &bootstrapv1.KubexmConfig{}),
		configTemplate.Register(mgr, &bootstrapv1.KubexmConfigTemplate{}),
		operation.Register(mgr, &bootstrapv1.KubexmOperation{}),
		remediation.Register(mgr, &bootstrapv1.KubexmRemediation{}),
		remediationTemplate.Register(mgr, &bootstrapv1.KubexmRemediationTemplate{}),
	)
}

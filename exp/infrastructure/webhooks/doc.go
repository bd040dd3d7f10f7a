// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks refuses objects of the infrastructure provider that cannot work. What it checks is in pure functions.
package webhooks

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// SetupWithManager serves the webhooks of all kinds of the provider.
func SetupWithManager(mgr ctrl.Manager) error {
	return errors.Join(
		cluster.Register(mgr, &infrav1.KubexmCluster{}),
		clusterTemplate.Register(mgr, &infrav1.KubexmClusterTemplate{}),
		host.Register(mgr, &infrav1.KubexmHost{}),
		machine.Register(mgr, &infrav1.KubexmMachine{}),
		machineTemplate.Register(mgr, &infrav1.KubexmMachineTemplate{}),
	)
}

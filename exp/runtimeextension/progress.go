// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimeextension

import (
	"cmp"
	"fmt"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// askAgainSeconds is how long Cluster API does not ask again about a Machine.
const askAgainSeconds = 10

// progress says how far the host of a Machine is: done, on its way, or failed. Cluster API asks on about one that failed, and hears when
// it was repaired.
func progress(machine *clusterv1.Machine, config *bootstrapv1.KubexmConfig, response *runtimehooksv1.UpdateMachineResponse) {
	host, last := cmp.Or(config.Status.Host.Name, machine.Name), config.Status.Operation(bootstrapv1.ConvergeOperation)
	health := hosthealth.Of(config, machine.Spec.Version)
	switch health.Phase {
	case hosthealth.Healthy:
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
		response.SetMessage(fmt.Sprintf("host %s is up to date with %s", host, config.Status.KubernetesVersion))
	case hosthealth.Failed:
		fail(response, fmt.Sprintf("host %s: %s\nRepair the host, or delete the Machine %s to have it replaced.", host, health, machine.Name))
	default:
		why := health.String()
		if !last.StartTime.IsZero() && last.EndTime.IsZero() {
			why += fmt.Sprintf("; %d of %d steps are done", ptr.Deref(config.Status.Progress.CompletedSteps, 0), ptr.Deref(config.Status.Progress.TotalSteps, 0))
		}
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
		response.SetRetryAfterSeconds(askAgainSeconds)
		response.SetMessage(fmt.Sprintf("host %s: %s", host, why))
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimeextension

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// askAgainSeconds is how long Cluster API does not ask again about a Machine.
const askAgainSeconds = 10

// progress says how far the host of a Machine is: done, on its way, or failed. Cluster API asks on about one that failed, and hears when
// it was mended.
func progress(machine *clusterv1.Machine, config *bootstrapv1.KubexmConfig, response *runtimehooksv1.UpdateMachineResponse) {
	host, last := cmp.Or(config.Status.Host.Name, machine.Name), config.Status.LastRun
	why := config.Behind(machine.Spec.Version)
	if ready := meta.FindStatusCondition(config.Status.Conditions, bootstrapv1.HostReadyCondition); why == "" && (ready == nil || ready.Status != metav1.ConditionTrue) {
		why = "it is not ready yet"
		if ready != nil {
			why = cmp.Or(ready.Message, why)
		}
	}
	switch {
	case why == "":
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
		response.SetMessage(fmt.Sprintf("host %s is as its KubexmConfig says, with %s", host, config.Status.KubernetesVersion))
	case last.Outcome == bootstrapv1.RunFailed:
		fail(response, fmt.Sprintf("host %s: %s\nMend the host, or delete the Machine %s to have it replaced.", host, why, machine.Name))
	default:
		if !last.StartTime.IsZero() && last.EndTime.IsZero() {
			why += fmt.Sprintf("; %d of %d steps are done", ptr.Deref(config.Status.Converged.Done, 0), ptr.Deref(config.Status.Converged.Total, 0))
		}
		response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
		response.SetRetryAfterSeconds(askAgainSeconds)
		response.SetMessage(fmt.Sprintf("host %s: %s", host, why))
	}
}

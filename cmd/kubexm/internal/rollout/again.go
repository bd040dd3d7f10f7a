// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// Again asks for hosts that are not tried any more: who calls a command once more has repaired what they failed for.
func (s *Snapshot) Again(ctx context.Context, c client.Client) error {
	for i := range s.Configs {
		config := &s.Configs[i]
		converged := meta.FindStatusCondition(config.Status.Conditions, bootstrapv1.HostConvergedCondition)
		if converged == nil || converged.Reason != bootstrapv1.RetriesExhaustedReason {
			continue
		}
		before := config.DeepCopy()
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.ConvergeAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
		if err := c.Patch(ctx, config, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("ask for host %s again: %w", nameOfHost(config), err)
		}
	}
	return nil
}

// Exhausted reports whether a host is waited for that is not tried any more. asked is when hosts were asked for again: what was
// said before does not count.
func (s *Snapshot) Exhausted(asked time.Time) bool {
	return slices.ContainsFunc(s.Configs, func(c bootstrapv1.KubexmConfig) bool {
		converged := meta.FindStatusCondition(c.Status.Conditions, bootstrapv1.HostConvergedCondition)
		return converged != nil && converged.Reason == bootstrapv1.RetriesExhaustedReason &&
			c.Status.Operation(bootstrapv1.ConvergeOperation).EndTime.After(asked)
	})
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// Adopt has hosts taken over that were refused because they are somebody else's: from the owner that is named by the host's name.
func (s *Snapshot) Adopt(ctx context.Context, c client.Client, from map[string]string) error {
	for i := range s.Configs {
		config := &s.Configs[i]
		owner := from[nameOfHost(config)]
		if owner == "" || !ownedByOther(config) || config.Annotations[bootstrapv1.AdoptHostAnnotation] == owner {
			continue
		}
		before := config.DeepCopy()
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.AdoptHostAnnotation, owner)
		if err := c.Patch(ctx, config, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("adopt host %s: %w", nameOfHost(config), err)
		}
	}
	return nil
}

func ownedByOther(config *bootstrapv1.KubexmConfig) bool {
	for _, kind := range []string{bootstrapv1.HostConvergedCondition, bootstrapv1.HostResetCondition} {
		if c := meta.FindStatusCondition(config.Status.Conditions, kind); c != nil && c.Reason == bootstrapv1.HostOwnedByOtherReason {
			return true
		}
	}
	return false
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
)

// ofInventory is what becomes of a KubexmConfig that names its host itself: the same, but that no Machine says when the host
// is to be given back. Its own deletion does.
func (r *Config) ofInventory(ctx context.Context, s *scope) (ctrl.Result, error) {
	switch {
	case s.config.DeletionTimestamp.IsZero() && s.cluster == nil:
		return ctrl.Result{}, nil // we are told when it is there
	case s.config.DeletionTimestamp.IsZero():
		return follows(ctx, s, []phase{
			{"take in what a job came to", r.takesIn},
			{"find the host", r.finds},
			{"reboot the host", r.reboots},
			{"wait for the cluster", r.awaits},
			{"converge the host", r.converges},
		})
	}
	if result, stops := r.stops(s); stops {
		return result, nil
	}
	if othersHold(s.config.Annotations) {
		return ctrl.Result{}, nil // we are told when they let it go
	}
	return r.cleans(ctx, s)
}

// releases gives the host back to the inventory, and lets the KubexmConfig go.
func (r *Config) releases(ctx context.Context, s *scope) error {
	inventory, ok := s.adapter.(*infra.InventoryAdapter)
	if !ok {
		return fmt.Errorf("the KubexmConfig %s has no host of the inventory", s.config.Name)
	}
	if err := inventory.Release(ctx, s.subject()); err != nil {
		return err
	}
	s.ended = true
	r.forget(s.config.UID)
	controllerutil.RemoveFinalizer(s.config, bootstrapv1.ConfigFinalizer)
	return nil
}

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
			{"find the host among the members", r.belongs}, // before it is claimed
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

// belongs refuses a KubexmConfig that names its host itself, and that nobody has made a member. Who writes the KubexmClusterConfig lists
// hosts that the control plane has chosen, and no others: whoever may create a KubexmConfig must not get certificates of etcd, or
// a place behind the load balancers' address.
func (r *Config) belongs(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.clusterConfig == nil {
		setFalse(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.WaitingForClusterReason, clusterConfigMissing(s.cluster))
		return false, ctrl.Result{}, nil // we are told when it is there
	}
	if s.member() != nil {
		return true, ctrl.Result{}, nil
	}
	r.Runner.Cancel(s.key, errChanged)
	ref := s.config.Spec.HostRef
	setFalse(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.NotMemberReason, fmt.Sprintf(
		"the KubexmClusterConfig %s does not list the host %s with the role %s for this KubexmConfig, and nothing is done with it. "+
			"To make it a member, choose it in the KubexmControlPlane (spec.cluster.etcd.hosts or spec.cluster.controlPlaneEndpoint.hosts), which "+
			"makes a KubexmConfig of its own for it; and delete this one", s.cluster.Name, ref.Name, ref.Role))
	return false, ctrl.Result{}, nil // we are told when the list changes
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

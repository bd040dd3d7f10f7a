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

// ensureMember refuses a KubexmConfig that names its host itself, and that nobody has made a member. Who writes the KubexmClusterConfig
// lists hosts that the control plane has chosen, and no others: anyone who may create a KubexmConfig must not get certificates of etcd, or
// a place behind the load balancers' address.
func (r *KubexmConfigReconciler) ensureMember(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	if !s.hasNoMachine() {
		return true, ctrl.Result{}, nil
	}
	if s.clusterConfig == nil {
		why := clusterConfigMissing(s.cluster)
		setFalse(s.config, bootstrapv1.HostConvergedCondition, why.Reason, why.Message)
		return false, ctrl.Result{}, nil // we are told when it is there
	}
	if s.member() != nil {
		return true, ctrl.Result{}, nil
	}
	r.Runner.Cancel(s.key, errChanged)
	ref := s.config.Spec.HostRef
	setFalse(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.NotMemberReason, fmt.Sprintf(
		"the KubexmClusterConfig %s does not list the host %s with the role %s for this KubexmConfig, and nothing is done with it. "+
			"To make it a member, choose it in the KubexmControlPlane (spec.cluster.etcd.hosts or spec.cluster.loadBalancer.keepalived.hosts), which "+
			"makes a KubexmConfig of its own for it; and delete this one", s.cluster.Name, ref.Name, ref.Role))
	return false, ctrl.Result{}, nil // we are told when the list changes
}

// releaseClaim releases the host to the inventory, and lets the KubexmConfig go.
func (r *KubexmConfigReconciler) releaseClaim(ctx context.Context, s *scope) error {
	inventory, ok := s.adapter.(*infra.InventoryAdapter)
	if !ok {
		return fmt.Errorf("the KubexmConfig %s has no host of the inventory", s.config.Name)
	}
	if err := inventory.Release(ctx, s.subject()); err != nil {
		return err
	}
	s.ended = true
	r.drop(s.config.UID)
	controllerutil.RemoveFinalizer(s.config, bootstrapv1.ConfigFinalizer)
	return nil
}

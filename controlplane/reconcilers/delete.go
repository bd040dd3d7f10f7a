// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
)

// askAgain is when to look again for Machines that are not ours, whose changes are not watched.
const askAgain = 5 * time.Second

// reconcileDelete is what becomes of a KubexmControlPlane that is deleted, in order. Each phase says what it waits for.
func (r *KubexmControlPlaneReconciler) reconcileDelete(ctx context.Context, s *scope) (ctrl.Result, error) {
	// A cache may not show yet what was made a moment ago. Left behind, its hooks would keep it for ever.
	var err error
	if s.Machines, err = machinesOf(ctx, r.Reader, s.Cluster); err != nil {
		return ctrl.Result{}, err
	}
	if s.Configs, err = configsOf(ctx, r.Reader, s.Cluster); err != nil {
		return ctrl.Result{}, err
	}
	for _, phase := range []struct {
		name string
		do   func(context.Context, *scope) (*decision.Blocker, error)
		// again is when to reconcile again, 0 where what is waited for is watched.
		again time.Duration
	}{
		{"workers", waitForWorkers, askAgain}, // first, so that they can be drained
		{"Machines", r.deleteMachines, 0},
		{"hosts that are no Nodes", r.deleteInventory, 0},
	} {
		if s.deleting, err = phase.do(ctx, s); err != nil {
			return ctrl.Result{}, fmt.Errorf("%s: %w", phase.name, err)
		}
		if s.deleting != nil {
			return ctrl.Result{RequeueAfter: phase.again}, nil
		}
	}
	s.deleting = decision.Block(controlplanev1.DeletionCompletedReason, "")
	r.forget(s.Object.UID)
	controllerutil.RemoveFinalizer(s.Object, controlplanev1.ControlPlaneFinalizer)
	return ctrl.Result{}, nil
}

func waitForWorkers(_ context.Context, s *scope) (*decision.Blocker, error) {
	workers := s.Workers()
	if len(workers) == 0 {
		return nil, nil
	}
	return decision.Block(controlplanev1.WaitingForWorkersDeletionReason,
		"%d workers still exist, among them the Machine %s", len(workers), workers[0].Name), nil
}

// deleteMachines deletes the control plane's own Machines, and lets their hosts go.
func (r *KubexmControlPlaneReconciler) deleteMachines(ctx context.Context, s *scope) (*decision.Blocker, error) {
	own := s.Own()
	for i := range own {
		if !own[i].DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, &own[i]); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete the Machine %s: %w", own[i].Name, err)
		}
	}
	if err := r.reconcileLeavingHosts(ctx, s); err != nil || len(own) == 0 {
		return nil, err
	}
	return decision.Block(controlplanev1.WaitingForMachineDeletionReason,
		"%d control plane Machines still exist, among them %s", len(own), own[0].Name), nil
}

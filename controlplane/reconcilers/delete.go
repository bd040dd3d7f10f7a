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
)

// askAgain is when to look again for Machines that are not ours, of which we are not told.
const askAgain = 5 * time.Second

// delete lets the control plane go: the workers first, so that they can be drained, then its own Machines.
func (r *KubexmControlPlaneReconciler) delete(ctx context.Context, s *scope) (ctrl.Result, error) {
	own := s.Own()
	if workers := s.Workers(); len(workers) > 0 {
		s.deletingReason = controlplanev1.WaitingForWorkersDeletionReason
		s.deleting = fmt.Sprintf("%d workers still exist, among them the Machine %s", len(workers), workers[0].Name)
		return ctrl.Result{RequeueAfter: askAgain}, nil
	}
	for i := range own {
		if !own[i].DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, &own[i]); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("delete the Machine %s: %w", own[i].Name, err)
		}
	}
	if err := r.leave(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if len(own) > 0 {
		s.deletingReason = controlplanev1.WaitingForMachineDeletionReason
		s.deleting = fmt.Sprintf("%d control plane Machines still exist, among them %s", len(own), own[0].Name)
		return ctrl.Result{}, nil // we are told when they are gone
	}
	if left, err := r.forgo(ctx, s); err != nil || left > 0 {
		s.deletingReason = controlplanev1.WaitingForMachineDeletionReason
		s.deleting = fmt.Sprintf("%d hosts that are no Nodes are still being reset", left)
		return ctrl.Result{}, err // we are told when they are gone
	}
	s.deletingReason = controlplanev1.DeletionCompletedReason
	r.forget(s.Object.UID)
	controllerutil.RemoveFinalizer(s.Object, controlplanev1.ControlPlaneFinalizer)
	return ctrl.Result{}, nil
}

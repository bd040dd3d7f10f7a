// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1beta1"
)

// Host says of each KubexmHost whether it may be claimed.
type Host struct {
	Options
}

// Reconcile looks at one KubexmHost. Its claim and finalizer are written together, by Machine; here a finalizer goes
// where somebody has removed a claim by hand.
func (r *Host) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	host := &infrav1.KubexmHost{}
	if err := r.Client.Get(ctx, request.NamespacedName, host); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.isOthers(host) {
		return ctrl.Result{}, nil
	}
	isPaused, requeue, err := paused.EnsurePausedCondition(ctx, r.Client, nil, host)
	if err != nil || requeue {
		return ctrl.Result{}, err
	}
	if wasLet(host) && !isPaused {
		before := host.DeepCopy()
		host.Release(metav1.NewTime(r.now()))
		err := r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return ctrl.Result{}, client.IgnoreNotFound(err) // we are told of the change
	}
	helper, err := patch.NewHelper(host, r.Client)
	if err != nil {
		return ctrl.Result{}, err
	}
	if conditions.IsFalse(host, infrav1.CleanCondition) && host.Spec.ClaimRef == (infrav1.MachineReference{}) && !host.IsQuarantined() && !wasLet(host) {
		conditions.Delete(host, infrav1.CleanCondition) // somebody has cleaned the host, and ended its quarantine
	}
	seen := availability(host, r.now())
	setAvailable(host, seen)
	if host.Spec.ClaimRef == (infrav1.MachineReference{}) && !isPaused {
		controllerutil.RemoveFinalizer(host, infrav1.HostFinalizer)
	}
	return ctrl.Result{RequeueAfter: seen.until}, client.IgnoreNotFound(helper.Patch(ctx, host,
		patch.WithStatusObservedGeneration{}, patch.WithOwnedConditions{Conditions: []string{infrav1.AvailableCondition, infrav1.CleanCondition}}))
}

func setAvailable(host *infrav1.KubexmHost, seen state) {
	conditions.Set(host, metav1.Condition{
		Type:    infrav1.AvailableCondition,
		Status:  conditions.BoolToStatus(seen.available),
		Reason:  seen.reason,
		Message: seen.message,
	})
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
)

// Host says of each KubexmHost whether it may be claimed.
type Host struct {
	Options
}

// Reconcile looks at one KubexmHost. Its claim and finalizer are written together, by Machine; here a finalizer goes
// where somebody has removed a claim by hand.
func (r *Host) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	host := &infrav1.KubexmHost{}
	written, err := live.Get(ctx, r.Client, r.Reader, request.NamespacedName, host)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.isOthers(host) {
		return ctrl.Result{}, nil
	}
	isPaused, requeue, err := paused.EnsurePausedCondition(ctx, live.Client(r.Client, r.Reader), nil, host)
	if err != nil || requeue {
		return ctrl.Result{}, err
	}
	seen := availability(host, r.now())
	setAvailable(host, seen)
	if host.Spec.ClaimRef == (infrav1.MachineReference{}) && !isPaused {
		controllerutil.RemoveFinalizer(host, infrav1.HostFinalizer)
	}
	host.Status.ObservedGeneration = host.Generation
	result = ctrl.Result{RequeueAfter: seen.until}
	written.Close(ctx, &result, &reterr)
	return result, reterr
}

func setAvailable(host *infrav1.KubexmHost, seen state) {
	conditions.Set(host, metav1.Condition{
		Type:    infrav1.AvailableCondition,
		Status:  conditions.BoolToStatus(seen.available),
		Reason:  seen.reason,
		Message: seen.message,
	})
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
)

// KubexmHostReconciler says of each KubexmHost whether it may be claimed.
type KubexmHostReconciler struct {
	Options
	// Events records what is the matter with a host's identity. May be nil.
	Events events.EventRecorder
}

// Reconcile observes one KubexmHost. Its claim and finalizer are written together, by the KubexmMachineReconciler; here a finalizer is
// removed where somebody has removed a claim by hand.
func (r *KubexmHostReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
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
	if wasLet(host) && !isPaused {
		before := host.DeepCopy()
		host.Release(metav1.NewTime(r.now()))
		err := r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return ctrl.Result{}, client.IgnoreNotFound(err) // the change is watched
	}
	if host.Spec.ClaimRef == (infrav1.MachineReference{}) && host.IsQuarantined() && !isPaused &&
		conditions.GetReason(host, infrav1.CleanCondition) == infrav1.InUseReason {
		host.MarkNotReset() // or it would be in use still, and in quarantine again, when its quarantine is ended
	}
	ids, err := r.readIdentities(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if conditions.IsFalse(host, infrav1.CleanCondition) &&
		host.Spec.ClaimRef == (infrav1.MachineReference{}) && !host.IsQuarantined() && !wasLet(host) {
		conditions.Delete(host, infrav1.CleanCondition) // somebody has cleaned the host, and ended its quarantine
	}
	seen := availability(host, r.now())
	if refused := ids.refuses(host); seen.available && refused != nil {
		seen = *refused
	}
	setAvailable(host, seen)
	unique := ids.unique(host)
	r.warn(host, unique)
	conditions.Set(host, unique)
	if host.Spec.ClaimRef == (infrav1.MachineReference{}) && !isPaused {
		controllerutil.RemoveFinalizer(host, infrav1.HostFinalizer)
	}
	host.Status.ObservedGeneration = host.Generation
	result = ctrl.Result{RequeueAfter: seen.until}
	written.Close(ctx, &result, &reterr)
	return result, reterr
}

// warn records once what is the matter with the host's identity.
func (r *KubexmHostReconciler) warn(host *infrav1.KubexmHost, unique metav1.Condition) {
	was := conditions.Get(host, infrav1.UniqueCondition)
	isKnown := was != nil && conditions.HasSameStateExceptObservedGeneration(was, &unique)
	if r.Events == nil || unique.Reason == infrav1.UniqueReason || isKnown {
		return
	}
	r.Events.Eventf(host, nil, corev1.EventTypeWarning, unique.Reason, "Identify", "%s", unique.Message[:min(1000, len(unique.Message))])
}

func setAvailable(host *infrav1.KubexmHost, seen state) {
	conditions.Set(host, metav1.Condition{
		Type:    infrav1.AvailableCondition,
		Status:  conditions.BoolToStatus(seen.available),
		Reason:  seen.reason,
		Message: seen.message,
	})
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"net"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
)

// KubexmClusterReconciler publishes each KubexmCluster's endpoint and failure domains.
type KubexmClusterReconciler struct {
	Options
}

// clusterScope is all that one reconcile knows.
type clusterScope struct {
	infra *infrav1.KubexmCluster
	// cluster is nil while there is none.
	cluster  *clusterv1.Cluster
	owners   []clusterv1.Machine
	machines []infrav1.KubexmMachine
	// controlPlane is the endpoint that the control plane says.
	controlPlane clusterv1.APIEndpoint
}

// Reconcile brings one KubexmCluster closer to what it must be.
func (r *KubexmClusterReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	infra := &infrav1.KubexmCluster{}
	written, err := live.Get(ctx, r.Client, r.Reader, request.NamespacedName, infra)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.isOthers(infra) {
		return ctrl.Result{}, nil
	}
	cluster, err := util.GetOwnerCluster(ctx, r.Client, infra.ObjectMeta)
	if err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, fmt.Errorf("get the Cluster of the KubexmCluster %s: %w", klog.KObj(infra), err)
	}
	if annotations.IsExternallyManaged(infra) {
		return ctrl.Result{}, r.reconcileExternallyManaged(ctx, infra)
	}
	isPaused, requeue, err := paused.EnsurePausedCondition(ctx, live.Client(r.Client, r.Reader), cluster, infra)
	if err != nil || isPaused || requeue {
		return ctrl.Result{}, err
	}
	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, infra, infrav1.ClusterFinalizer); err != nil || added {
		return ctrl.Result{}, err
	}
	s := &clusterScope{infra: infra, cluster: cluster}
	if cluster != nil {
		if s.owners, s.machines, err = r.members(ctx, cluster); err != nil {
			return ctrl.Result{}, err
		}
		if s.controlPlane, err = r.controlPlaneEndpoint(ctx, cluster); err != nil {
			return ctrl.Result{}, err
		}
	}

	defer func() {
		infra.Status.ObservedGeneration = infra.Generation
		written.Close(ctx, &result, &reterr)
	}()
	if !infra.DeletionTimestamp.IsZero() {
		r.reconcileDelete(s)
	} else {
		r.reconcileCluster(s)
	}
	return ctrl.Result{}, nil
}

// reconcileExternallyManaged is for a KubexmCluster that somebody else manages, who writes its endpoint and status: nothing of ours holds
// it.
func (r *KubexmClusterReconciler) reconcileExternallyManaged(ctx context.Context, infra *infrav1.KubexmCluster) error {
	before := infra.DeepCopy()
	if !controllerutil.RemoveFinalizer(infra, infrav1.ClusterFinalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, infra, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of the KubexmCluster %s: %w", klog.KObj(infra), err)
	}
	return nil
}

// reconcileCluster says what the Cluster is to know. Hosts exist before the cluster does, so there is nothing to wait for.
func (r *KubexmClusterReconciler) reconcileCluster(s *clusterScope) {
	conditions.Set(s.infra, metav1.Condition{
		Type: infrav1.DeletingCondition, Status: metav1.ConditionFalse, Reason: infrav1.NotDeletingReason,
	})
	ready := metav1.Condition{Type: infrav1.ReadyCondition, Status: metav1.ConditionTrue, Reason: infrav1.ReadyReason}
	if s.cluster == nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, infrav1.WaitingForOwnerReason, "no Cluster owns this KubexmCluster yet"
		conditions.Set(s.infra, ready)
		return
	}
	s.infra.Status.FailureDomains = s.infra.Spec.FailureDomains
	s.infra.Status.Initialization.Provisioned = ptr.To(true)
	s.infra.Spec.ControlPlaneEndpoint = endpoint(
		s.infra.Spec.ControlPlaneEndpoint, s.cluster.Spec.ControlPlaneEndpoint, s.controlPlane, s.owners, s.machines)
	conditions.Set(s.infra, endpointCondition(s.infra.Spec.ControlPlaneEndpoint, s.cluster.Spec.ControlPlaneEndpoint))
	conditions.Set(s.infra, ready)
}

func endpointCondition(ours, clusters clusterv1.APIEndpoint) metav1.Condition {
	address := func(e clusterv1.APIEndpoint) string { return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))) }
	condition := metav1.Condition{Type: infrav1.EndpointAvailableCondition}
	switch {
	case ours.Host == "":
		condition.Status, condition.Reason = metav1.ConditionFalse, infrav1.WaitingForHostReason
		condition.Message = "the endpoint becomes the IPv4 address of the first control plane Machine's host: declare it, if no such host has one"
	case clusters.IsValid() && clusters != ours:
		condition.Status, condition.Reason = metav1.ConditionFalse, infrav1.EndpointConflictReason
		condition.Message = fmt.Sprintf("spec.controlPlaneEndpoint is %s here and %s in the Cluster, whose counts: create this KubexmCluster anew, without the field",
			address(ours), address(clusters))
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, infrav1.EndpointAvailableReason, address(ours)
	}
	return condition
}

// reconcileDelete ends the KubexmCluster when its machines are gone.
func (r *KubexmClusterReconciler) reconcileDelete(s *clusterScope) {
	deleting := metav1.Condition{Type: infrav1.DeletingCondition, Status: metav1.ConditionTrue, Reason: infrav1.DeletingReason}
	if left := len(s.machines); left > 0 {
		deleting.Reason = infrav1.WaitingForMachinesReason
		deleting.Message = fmt.Sprintf("%d KubexmMachines of the cluster still have hosts", left)
	} else {
		controllerutil.RemoveFinalizer(s.infra, infrav1.ClusterFinalizer)
	}
	conditions.Set(s.infra, deleting)
	conditions.Set(s.infra, metav1.Condition{
		Type: infrav1.ReadyCondition, Status: metav1.ConditionFalse, Reason: infrav1.DeletingReason, Message: deleting.Message,
	})
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/operations"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/watch"
)

// addOperations adds the reconciler of KubexmOperations. hosts knows how hosts are reached; ctx carries the logger of what runs on several.
func addOperations(ctx context.Context, mgr ctrl.Manager, o Options, hosts operations.Hosts) error {
	reader, jobs := mgr.GetClient(), operations.NewJobs(ctx, o.Progress)
	if err := mgr.Add(jobs.Runnable()); err != nil {
		return err
	}
	ofCluster, err := util.ClusterToTypedObjectsMapper(reader, &bootstrapv1.KubexmOperationList{}, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("map Clusters to KubexmOperations: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&bootstrapv1.KubexmOperation{}).
		Watches(&bootstrapv1.KubexmConfig{}, handler.EnqueueRequestsFromMapFunc(operationsOf(reader))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster), builder.WithPredicates(watch.ClusterChanged())).
		WatchesRawSource(jobs.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency}).
		Complete(&operations.KubexmOperationReconciler{
			Client: reader, Reader: mgr.GetAPIReader(), WatchFilter: o.WatchFilter, Events: mgr.GetEventRecorder("kubexmoperation"),
			Hosts: hosts, Jobs: jobs,
		})
	if err != nil {
		return fmt.Errorf("set up the controller of KubexmOperations: %w", err)
	}
	return nil
}

// heldChanged is of a KubexmClusterConfig whose hosts are to stand still, or to go on.
func heldChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[bootstrapv1.HeldByAnnotation] != e.ObjectNew.GetAnnotations()[bootstrapv1.HeldByAnnotation]
	}}
}

// operationsOf are the KubexmOperations that go on with a host, by its KubexmConfig.
func operationsOf(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		list := &bootstrapv1.KubexmOperationList{}
		if err := reader.List(ctx, list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the KubexmOperations of a KubexmConfig", "KubexmConfig", object.GetName())
			return nil
		}
		var requests []ctrl.Request
		for i := range list.Items {
			o := &list.Items[i]
			for _, h := range o.Status.Hosts {
				if h.ConfigName == object.GetName() && h.EndTime.IsZero() {
					requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
				}
			}
		}
		return requests
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch maps the events of Cluster API's objects to the objects of ours that are to be reconciled for them.
package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// ClusterChanged passes over what no provider reads: most updates of a Cluster are of its status.
func ClusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, isOld := e.ObjectOld.(*clusterv1.Cluster)
		updated, isNew := e.ObjectNew.(*clusterv1.Cluster)
		return !isOld || !isNew || old.Generation != updated.Generation ||
			!equality.Semantic.DeepEqual(old.Status.Initialization, updated.Status.Initialization)
	}}
}

// Referred maps a Cluster to the object that its reference is to, if that is of this kind.
func Referred(kind schema.GroupKind, reference func(*clusterv1.Cluster) clusterv1.ContractVersionedObjectReference) handler.MapFunc {
	return func(_ context.Context, object client.Object) []ctrl.Request {
		cluster, ok := object.(*clusterv1.Cluster)
		if !ok {
			return nil
		}
		to := reference(cluster)
		if to.GroupKind() != kind {
			return nil
		}
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: cluster.Namespace, Name: to.Name}}}
	}
}

// OfCluster maps an object to what `of` maps the Cluster to whose name is in the object's label.
func OfCluster(reader client.Reader, of handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		name := object.GetLabels()[clusterv1.ClusterNameLabel]
		if name == "" {
			return nil
		}
		cluster := &clusterv1.Cluster{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, cluster); err != nil {
			if client.IgnoreNotFound(err) != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot get the Cluster of an object", "object", object.GetName(), "Cluster", name)
			}
			return nil
		}
		return of(ctx, cluster)
	}
}

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
	"sigs.k8s.io/controller-runtime/pkg/handler"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/watch"
)

// addRemediation adds the reconciler of KubexmRemediations.
func addRemediation(mgr ctrl.Manager, o Options) error {
	ofCluster, err := util.ClusterToTypedObjectsMapper(mgr.GetClient(), &bootstrapv1.KubexmRemediationList{}, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("map Clusters to KubexmRemediations: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&bootstrapv1.KubexmRemediation{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(sameName)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster), builder.WithPredicates(watch.ClusterChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency}).
		Complete(&reconcilers.KubexmRemediationReconciler{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), WatchFilter: o.WatchFilter, Events: mgr.GetEventRecorder("kubexmremediation"),
		})
	if err != nil {
		return fmt.Errorf("set up the controller of KubexmRemediations: %w", err)
	}
	return nil
}

// sameName is a Machine's KubexmRemediation, which most do not have: MachineHealthChecks give it the Machine's name.
func sameName(_ context.Context, object client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}

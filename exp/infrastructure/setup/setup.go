// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setup puts the infrastructure provider into a manager.
package setup

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/webhooks"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/watch"
)

// Options is how reconcilers run.
type Options struct {
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	// Concurrency is how many objects of one kind are reconciled at once, 10 if 0.
	Concurrency int
}

// AddToScheme adds the kinds that the provider reads and writes.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(clusterv1.AddToScheme(scheme), infrav1.AddToScheme(scheme))
}

// Webhooks serves the provider's webhooks.
func Webhooks(mgr ctrl.Manager) error { return webhooks.SetupWithManager(mgr) }

// Reconcilers adds the provider's reconcilers. The manager's scheme must have what AddToScheme adds.
func Reconcilers(mgr ctrl.Manager, o Options) error {
	if o.Concurrency == 0 {
		o.Concurrency = 10
	}
	with := controller.Options{MaxConcurrentReconciles: o.Concurrency}
	shared := reconcilers.Options{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), WatchFilter: o.WatchFilter}

	clusters, err := util.ClusterToTypedObjectsMapper(mgr.GetClient(), &infrav1.KubexmMachineList{}, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("map Clusters to KubexmMachines: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.KubexmMachine{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(
			util.MachineToInfrastructureMapFunc(infrav1.GroupVersion.WithKind("KubexmMachine")))).
		Watches(&infrav1.KubexmHost{}, handler.EnqueueRequestsFromMapFunc(machinesOfHost(mgr.GetClient())),
			builder.WithPredicates(notJustAlive())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(clusters), builder.WithPredicates(watch.ClusterChanged())).
		WithOptions(with).
		Complete(&reconcilers.KubexmMachineReconciler{Options: shared}); err != nil {
		return fmt.Errorf("set up the controller of KubexmMachines: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.KubexmHost{}, builder.WithPredicates(notJustAlive())).
		Watches(&infrav1.KubexmHost{}, handler.EnqueueRequestsFromMapFunc(sharing(mgr.GetClient())),
			builder.WithPredicates(identityChanged())).
		WithOptions(with).
		Complete(&reconcilers.KubexmHostReconciler{Options: shared, Events: mgr.GetEventRecorder("kubexm-infrastructure")}); err != nil {
		return fmt.Errorf("set up the controller of KubexmHosts: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.KubexmMachineTemplate{}).
		Watches(&infrav1.KubexmHost{}, handler.EnqueueRequestsFromMapFunc(templatesOfHost(mgr.GetClient())),
			builder.WithPredicates(capacityChanged())).
		WithOptions(with).
		Complete(&reconcilers.KubexmMachineTemplateReconciler{Options: shared}); err != nil {
		return fmt.Errorf("set up the controller of KubexmMachineTemplates: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.KubexmCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(clusterOf), builder.WithPredicates(watch.ClusterChanged())).
		Watches(&infrav1.KubexmMachine{}, handler.EnqueueRequestsFromMapFunc(clusterOfMachine(mgr.GetClient())),
			builder.WithPredicates(addressesChanged())).
		WithOptions(with).
		Complete(&reconcilers.KubexmClusterReconciler{Options: shared}); err != nil {
		return fmt.Errorf("set up the controller of KubexmClusters: %w", err)
	}
	return nil
}

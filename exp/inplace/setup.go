// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// Options is how the reconciler runs.
type Options struct {
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	// Concurrency is how many MachineDeployments are reconciled at once, 10 if 0.
	Concurrency int
}

// SetupWithManager adds the reconciler. The manager's scheme must have Cluster API's kinds and those of the bootstrap and
// control plane providers.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	reader := mgr.GetClient()
	deployment := handler.EnqueueRequestsFromMapFunc(ofDeployment)
	cluster := handler.EnqueueRequestsFromMapFunc(ofCluster(reader))
	// Named after its purpose: Cluster API has a controller of MachineDeployments too.
	if err := ctrl.NewControllerManagedBy(mgr).Named("kubexm-inplace").
		For(&clusterv1.MachineDeployment{}).
		Watches(&clusterv1.MachineSet{}, deployment).
		Watches(&clusterv1.Machine{}, deployment).
		Watches(&bootstrapv1.KubexmConfig{}, deployment).
		Watches(&clusterv1.Cluster{}, cluster).
		Watches(&controlplanev1.KubexmControlPlane{}, cluster).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(o.Concurrency, 10)}).
		Complete(&MachineDeploymentReconciler{
			Client: reader, Reader: mgr.GetAPIReader(), WatchFilter: o.WatchFilter, Events: mgr.GetEventRecorder("kubexm-inplace"),
		}); err != nil {
		return fmt.Errorf("set up the controller of upgrades in place: %w", err)
	}
	return nil
}

// ofDeployment is the MachineDeployment that an object belongs to: Cluster API labels them all.
func ofDeployment(_ context.Context, object client.Object) []ctrl.Request {
	name := object.GetLabels()[clusterv1.MachineDeploymentNameLabel]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}}}
}

// ofCluster are the MachineDeployments of a Cluster, or of its KubexmControlPlane, that are being upgraded.
func ofCluster(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		name := object.GetName()
		if _, isCluster := object.(*clusterv1.Cluster); !isCluster {
			name = object.GetLabels()[clusterv1.ClusterNameLabel]
		}
		list := &clusterv1.MachineDeploymentList{}
		if err := reader.List(ctx, list, client.InNamespace(object.GetNamespace()),
			client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the MachineDeployments of a Cluster", "Cluster", name)
			return nil
		}
		var requests []ctrl.Request
		for i := range list.Items {
			if concerned(&list.Items[i]) {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return requests
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// floor adds a controller for each of ours, with what it watches. Each object reconciles the one of its own name, and the
// reconciler gets that from the cache and is done: no reconciler of these kinds can cost less.
func floor(mgr ctrl.Manager) error {
	for _, c := range []struct {
		name    string
		of      client.Object
		watches []client.Object
	}{
		{"machine", &infrav1.KubexmMachine{}, []client.Object{&clusterv1.Machine{}, &infrav1.KubexmHost{}, &clusterv1.Cluster{}}},
		{"host", &infrav1.KubexmHost{}, nil},
		{"cluster", &infrav1.KubexmCluster{}, []client.Object{&clusterv1.Cluster{}, &infrav1.KubexmMachine{}}},
		{"controlplane", &controlplanev1.KubexmControlPlane{}, []client.Object{&clusterv1.Machine{}, &bootstrapv1.KubexmConfig{}, &clusterv1.Cluster{}}},
		{"inplace", &clusterv1.MachineDeployment{}, []client.Object{
			&clusterv1.MachineSet{}, &clusterv1.Machine{}, &bootstrapv1.KubexmConfig{},
			&clusterv1.Cluster{}, &controlplanev1.KubexmControlPlane{},
		}},
		{"config", &bootstrapv1.KubexmConfig{}, []client.Object{
			&clusterv1.Machine{}, &clusterv1.Cluster{}, &controlplanev1.KubexmControlPlane{},
			&infrav1.KubexmMachine{}, &infrav1.KubexmHost{},
		}},
	} {
		b := ctrl.NewControllerManagedBy(mgr).Named(c.name).For(c.of).WithOptions(controller.Options{MaxConcurrentReconciles: 10})
		for _, o := range c.watches {
			b = b.Watches(o, &handler.EnqueueRequestForObject{})
		}
		if c.name == "config" {
			b = b.WatchesMetadata(&corev1.Secret{}, &handler.EnqueueRequestForObject{})
		}
		if err := b.Complete(gets(mgr.GetClient(), c.of)); err != nil {
			return err
		}
	}
	return nil
}

func gets(reader client.Reader, of client.Object) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
		object, _ := of.DeepCopyObject().(client.Object)
		return ctrl.Result{}, client.IgnoreNotFound(reader.Get(ctx, r.NamespacedName, object))
	})
}

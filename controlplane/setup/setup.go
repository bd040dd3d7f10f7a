// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setup puts the control plane provider into a manager.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/webhooks"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/workload"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/watch"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Options is how the reconciler runs.
type Options struct {
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	// Concurrency is how many objects are reconciled at once, 10 if 0.
	Concurrency int
	// Workload observes clusters through their own APIs. If nil, by their kubeconfigs.
	Workload reconcilers.Workload
	// RemovedAPIs finds out which APIs are in use that a version does not serve. If nil, by their kubeconfigs.
	RemovedAPIs reconcilers.RemovedAPIs
	// Serving approves requests of kubelets for serving certificates. If nil, by the clusters' kubeconfigs.
	Serving reconcilers.Serving
	// Clock is the one by which Machines age, and that maintenance windows are compared with; the system's if nil.
	Clock clock.PassiveClock
}

// AddToScheme adds the kinds that the provider reads and writes.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(
		clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme),
		bootstrapv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme),
	)
}

// Webhooks serves the provider's webhooks.
func Webhooks(mgr ctrl.Manager) error { return webhooks.SetupWithManager(mgr) }

// Reconcilers adds the provider's reconciler. The manager's scheme must have what AddToScheme adds.
func Reconcilers(_ context.Context, mgr ctrl.Manager, o Options) error {
	if o.Workload == nil {
		o.Workload = look
	}
	if o.RemovedAPIs == nil {
		o.RemovedAPIs = removedAPIs
	}
	if o.Serving == nil {
		o.Serving = serving
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&controlplanev1.KubexmControlPlane{}).
		Owns(&clusterv1.Machine{}).
		Watches(&bootstrapv1.KubexmConfig{}, handler.EnqueueRequestsFromMapFunc(ofConfig(mgr.GetClient()))).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofOtherWorker(mgr.GetClient()))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster)).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(o.Concurrency, 10)}).
		Complete(&reconcilers.KubexmControlPlaneReconciler{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), WatchFilter: o.WatchFilter,
			Events: mgr.GetEventRecorder("kubexmcontrolplane"), Workload: o.Workload, RemovedAPIs: o.RemovedAPIs, Serving: o.Serving,
			Clock: o.Clock,
		}); err != nil {
		return fmt.Errorf("set up the controller of KubexmControlPlanes: %w", err)
	}
	return nil
}

// look connects with the kubeconfig.
func look(ctx context.Context, kubeconfig secret.Value, c *snapshot.ControlPlane) *snapshot.Workload {
	view, err := workload.Connect(kubeconfig)
	if err != nil {
		return &snapshot.Workload{Err: err}
	}
	return view.Look(ctx, c)
}

// removedAPIs connects with the kubeconfig.
func removedAPIs(ctx context.Context, kubeconfig secret.Value, version string) *snapshot.APIs {
	cluster, err := kube.FromKubeconfig(kubeconfig)
	if err != nil {
		return &snapshot.APIs{Err: err}
	}
	found, err := cluster.RemovedAPIs(ctx, version)
	apis := &snapshot.APIs{Err: err}
	for _, api := range found {
		apis.Removed = append(apis.Removed, api.String())
	}
	return apis
}

// serving connects with the kubeconfig.
func serving(ctx context.Context, kubeconfig secret.Value, c *snapshot.ControlPlane) *snapshot.Serving {
	view, err := workload.Connect(kubeconfig)
	if err != nil {
		return &snapshot.Serving{Err: err}
	}
	s := view.ApproveServing(ctx, c)
	if versions := snapshot.Versions(c.Own()); len(versions) > 0 {
		s.NotTold = view.TellKubeadm(ctx, versions[0].Version) // the oldest: others may not have followed yet
	}
	return s
}

// ofCluster is a Cluster's KubexmControlPlane.
var ofCluster = watch.Referred(controlplanev1.GroupVersion.WithKind("KubexmControlPlane").GroupKind(),
	func(c *clusterv1.Cluster) clusterv1.ContractVersionedObjectReference { return c.Spec.ControlPlaneRef })

// ofConfig is the KubexmControlPlane of the Cluster that a KubexmConfig belongs to: its status says where hosts are and how
// far they are.
func ofConfig(reader client.Reader) handler.MapFunc { return watch.OfCluster(reader, ofCluster) }

// ofOtherWorker is that of a worker of another bootstrap provider: once it has a Node, its kubelet may ask for a certificate.
func ofOtherWorker(reader client.Reader) handler.MapFunc {
	find := watch.OfCluster(reader, ofCluster)
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		machine, ok := object.(*clusterv1.Machine)
		if !ok || !snapshot.IsOtherWorker(machine) {
			return nil
		}
		return find(ctx, object)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// ofMachine is a Machine's KubexmConfig.
func ofMachine(_ context.Context, object client.Object) []ctrl.Request {
	machine, ok := object.(*clusterv1.Machine)
	if !ok || machine.Spec.Bootstrap.ConfigRef.GroupKind() != bootstrapv1.GroupVersion.WithKind("KubexmConfig").GroupKind() {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.Bootstrap.ConfigRef.Name}}}
}

// ofClusterConfig are the KubexmConfigs of a KubexmClusterConfig's Cluster: it says what all of its hosts share.
func ofClusterConfig(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		return configs(ctx, reader, object.GetNamespace(), object.GetName())
	}
}

// ofSecret are the KubexmConfigs of the Cluster that a Secret belongs to: some wait for its certificate authorities.
func ofSecret(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "KubexmConfig" {
			return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}}}
		}
		cluster := object.GetLabels()[clusterv1.ClusterNameLabel]
		if cluster == "" {
			return nil
		}
		return configs(ctx, reader, object.GetNamespace(), cluster)
	}
}

func configs(ctx context.Context, reader client.Reader, namespace, cluster string) []ctrl.Request {
	list := &bootstrapv1.KubexmConfigList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the KubexmConfigs of a Cluster", "Cluster", cluster)
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// ofInfraMachine is the KubexmConfig of the Machine that a KubexmMachine belongs to.
func ofInfraMachine(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		for _, owner := range object.GetOwnerReferences() {
			if owner.Kind != "Machine" {
				continue
			}
			machine := &clusterv1.Machine{}
			if err := reader.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}, machine); err != nil {
				if client.IgnoreNotFound(err) != nil {
					ctrl.LoggerFrom(ctx).Error(err, "Cannot get the Machine of a KubexmMachine", "Machine", owner.Name)
				}
				return nil
			}
			return ofMachine(ctx, machine)
		}
		return nil
	}
}

// ofHost is the KubexmConfig of the Machine that has a KubexmHost.
func ofHost(reader client.Reader) handler.MapFunc {
	through := ofInfraMachine(reader)
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		host, ok := object.(*infrav1.KubexmHost)
		if !ok || host.Spec.ClaimRef.Name == "" {
			return nil
		}
		if host.Spec.ClaimRef.KindOrDefault() == infrav1.ClaimedByConfig {
			return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: host.Namespace, Name: host.Spec.ClaimRef.Name}}}
		}
		machine := &infrav1.KubexmMachine{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: host.Namespace, Name: host.Spec.ClaimRef.Name}, machine); err != nil {
			if client.IgnoreNotFound(err) != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot get the KubexmMachine of a KubexmHost", "KubexmMachine", host.Spec.ClaimRef.Name)
			}
			return nil
		}
		return through(ctx, machine)
	}
}

// watcher returns what watches a kind of another infrastructure provider, once that is installed: what its objects are about is reconciled.
func watcher(mgr ctrl.Manager, built controller.Controller) func(context.Context, schema.GroupKind) error {
	log := mgr.GetLogger().WithName("infrastructure")
	tracker := &external.ObjectTracker{Controller: built, Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), PredicateLogger: &log}
	mapped := handler.EnqueueRequestsFromMapFunc(ofInfrastructure(mgr.GetClient(), mgr.GetAPIReader()))
	return func(_ context.Context, kind schema.GroupKind) error {
		found, err := mgr.GetRESTMapper().RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			return nil // it is not installed yet, and asked for again
		}
		if err != nil {
			return fmt.Errorf("find the kind %s: %w", kind, err)
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(found.GroupVersionKind)
		return tracker.Watch(log, object, mapped)
	}
}

// ofInfrastructure is the KubexmConfig of the Machine that an object of another infrastructure provider is about.
func ofInfrastructure(reader, live client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		key, found := infra.MachineOf(ctx, live, object)
		if !found {
			return nil
		}
		machine := &clusterv1.Machine{}
		if err := reader.Get(ctx, key, machine); err != nil {
			if client.IgnoreNotFound(err) != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot get the Machine of an infrastructure object", "Machine", key)
			}
			return nil
		}
		return ofMachine(ctx, machine)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/contract"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

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

// ofHost are the KubexmConfig of the Machine that has a KubexmHost, and those that name the KubexmHost themselves, of which some wait for
// it.
func ofHost(reader client.Reader) handler.MapFunc {
	through := ofInfraMachine(reader)
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		host, ok := object.(*infrav1.KubexmHost)
		if !ok {
			return nil
		}
		requests := naming(ctx, reader, host.Namespace, host.Name)
		if host.Spec.ClaimRef.Name == "" || host.Spec.ClaimRef.KindOrDefault() == infrav1.ClaimedByConfig {
			return requests
		}
		machine := &infrav1.KubexmMachine{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: host.Namespace, Name: host.Spec.ClaimRef.Name}, machine); err != nil {
			if client.IgnoreNotFound(err) != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot get the KubexmMachine of a KubexmHost", "KubexmMachine", host.Spec.ClaimRef.Name)
			}
			return requests
		}
		return append(requests, through(ctx, machine)...)
	}
}

// naming are the KubexmConfigs of a namespace that name a KubexmHost themselves, or any if the name is "".
func naming(ctx context.Context, reader client.Reader, namespace, host string) []ctrl.Request {
	list := &bootstrapv1.KubexmConfigList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the KubexmConfigs that name a KubexmHost", "KubexmHost", host)
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if name := list.Items[i].Spec.HostRef.Name; name != "" && (host == "" || name == host) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// hostChanged passes over what KubexmConfigs write of their hosts themselves. Whether a host may be had, they wait for.
func hostChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, wasHost := e.ObjectOld.(*infrav1.KubexmHost)
		is, isHost := e.ObjectNew.(*infrav1.KubexmHost)
		if !wasHost || !isHost {
			return false
		}
		before, now := conditions.Get(old, infrav1.AvailableCondition), conditions.Get(is, infrav1.AvailableCondition)
		return now != nil && (before == nil || !conditions.HasSameStateExceptObservedGeneration(before, now))
	}})
}

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// definitions are the CustomResourceDefinitions, of which the names are enough.
func definitions() *metav1.PartialObjectMetadata {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionKind)
	return definition
}

// defines reports whether a CustomResourceDefinition, <plural>.<group>, may be that of a kind. Some plurals are not as the contract makes
// them: metal3datas.
func defines(name string, kind schema.GroupKind) bool {
	plural, group, _ := strings.Cut(name, ".")
	return name == contract.CalculateCRDName(kind.Group, kind.Kind) ||
		group == kind.Group && strings.HasPrefix(plural, strings.ToLower(kind.Kind))
}

// ofDefinition are the KubexmConfigs of Machines that a kind matters to, by its CustomResourceDefinition. When the kind comes to be
// installed, they have its objects watched.
func ofDefinition(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		isOne := func(k schema.GroupKind) bool { return defines(object.GetName(), k) }
		machines := &clusterv1.MachineList{}
		if err := reader.List(ctx, machines, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the Machines of an infrastructure provider", "CustomResourceDefinition", object.GetName())
			return nil
		}
		var requests []ctrl.Request
		if slices.ContainsFunc(infra.Watched(nil), isOne) {
			requests = naming(ctx, reader, "", "")
		}
		for i := range machines.Items {
			if m := &machines.Items[i]; slices.ContainsFunc(infra.Watched(m), isOne) {
				requests = append(requests, ofMachine(ctx, m)...)
			}
		}
		return requests
	}
}

const (
	// servedAgain is when to ask again for a kind that is defined: the API server serves it a moment later, or never, if its names are
	// another's.
	servedAgain = 5 * time.Second
	// syncedAgain is when to read again objects of a kind that cannot be listed or watched: the manager has no right to, as a rule. Once it
	// has, all of them count as changed.
	syncedAgain = time.Minute
)

// kinds watches those of infrastructure providers, each from when it is installed. What their objects are about is reconciled.
type kinds struct {
	mgr   ctrl.Manager
	built controller.Controller
	// begun are the kinds that are watched already, each with an object of it.
	mu    sync.Mutex
	begun map[schema.GroupKind]client.Object
}

// watch has a kind watched, if it is installed; see KubexmConfigReconciler. Of one that is not, its CustomResourceDefinition is waited for.
func (k *kinds) watch(ctx context.Context, kind schema.GroupKind) (time.Duration, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if object := k.begun[kind]; object != nil {
		return k.synced(ctx, object)
	}
	if is, err := k.defined(ctx, kind); err != nil || !is {
		return 0, err // when it is, its CustomResourceDefinition has changed
	}
	found, err := k.mgr.GetRESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return servedAgain, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find the kind %s: %w", kind, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(found.GroupVersionKind)
	reader := k.mgr.GetClient()
	from := source.Source(source.Kind(k.mgr.GetCache(), client.Object(object),
		handler.EnqueueRequestsFromMapFunc(ofInfrastructure(reader, k.mgr.GetAPIReader())),
		// Also while they are paused: what is seen of a host then is as true.
		predicate.ResourceVersionChangedPredicate{}))
	k.begun[kind] = object
	switch kind {
	case infrav1.GroupVersion.WithKind("KubexmMachine").GroupKind():
		k.begun[kind] = &infrav1.KubexmMachine{}
		from = source.Kind(k.mgr.GetCache(), k.begun[kind], handler.EnqueueRequestsFromMapFunc(ofInfraMachine(reader)))
	case infrav1.GroupVersion.WithKind("KubexmHost").GroupKind():
		k.begun[kind] = &infrav1.KubexmHost{}
		from = source.Kind(k.mgr.GetCache(), k.begun[kind], handler.EnqueueRequestsFromMapFunc(ofHost(reader)), hostChanged())
	}
	if err := k.built.Watch(from); err != nil {
		delete(k.begun, kind)
		return 0, fmt.Errorf("watch the kind %s: %w", kind, err)
	}
	return k.synced(ctx, k.begun[kind])
}

// defined reports whether a kind may have a CustomResourceDefinition.
func (k *kinds) defined(ctx context.Context, kind schema.GroupKind) (bool, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(definitionKind.GroupVersion().WithKind(definitionKind.Kind + "List"))
	if err := k.mgr.GetCache().List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}
	return slices.ContainsFunc(all.Items, func(d metav1.PartialObjectMetadata) bool { return defines(d.Name, kind) }), nil
}

// synced is when to read again objects of a kind that is watched: its changes come once all that there is has come.
func (k *kinds) synced(ctx context.Context, object client.Object) (time.Duration, error) {
	informer, err := k.mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return 0, fmt.Errorf("watch the kind %T: %w", object, err)
	}
	if !informer.HasSynced() {
		return syncedAgain, nil
	}
	return 0, nil
}

// ofInfrastructure is the KubexmConfig of the Machine that an object of another infrastructure provider is about.
func ofInfrastructure(reader, live client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		key, found, err := infra.MachineOf(ctx, live, object)
		machine := &clusterv1.Machine{}
		if err == nil && found {
			err = client.IgnoreNotFound(reader.Get(ctx, key, machine))
		}
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find the Machine of an infrastructure object", "kind",
				object.GetObjectKind().GroupVersionKind().Kind, "object", client.ObjectKeyFromObject(object))
		}
		return ofMachine(ctx, machine) // none, if it was not found
	}
}

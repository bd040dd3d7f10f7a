// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/watch"
)

// machinesOfHost are the machine that has a host or, of a free host, all of its namespace that have none.
func machinesOfHost(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		host, ok := object.(*infrav1.KubexmHost)
		if !ok {
			return nil
		}
		if name := host.Spec.ClaimRef.Name; name != "" {
			return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: host.Namespace, Name: name}}}
		}
		machines := &infrav1.KubexmMachineList{}
		if err := reader.List(ctx, machines, client.InNamespace(host.Namespace)); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the KubexmMachines that wait for a host", "namespace", host.Namespace)
			return nil
		}
		var waiting []ctrl.Request
		for i := range machines.Items {
			if m := &machines.Items[i]; m.Status.HostRef.Name == "" || m.Status.HostRef.Name == host.Name {
				waiting = append(waiting, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			}
		}
		return waiting
	}
}

// notJustAlive passes over updates by which a host was dialled again and has said the same: there are many of hosts that nobody has, and
// each would have all machines reconciled that wait for one.
func notJustAlive() predicate.Predicate {
	said := func(object client.Object) *infrav1.KubexmHost {
		host, ok := object.DeepCopyObject().(*infrav1.KubexmHost)
		if !ok {
			return nil
		}
		host.ResourceVersion, host.ManagedFields = "", nil
		host.Status.LastHeartbeatTime, host.Status.Facts.ObservedTime = metav1.Time{}, metav1.Time{}
		return host
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		resynced := e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
		return resynced || !equality.Semantic.DeepEqual(said(e.ObjectOld), said(e.ObjectNew))
	}}
}

// clusterOf is a Cluster's KubexmCluster.
var clusterOf = watch.Referred(infrav1.GroupVersion.WithKind("KubexmCluster").GroupKind(),
	func(c *clusterv1.Cluster) clusterv1.ContractVersionedObjectReference { return c.Spec.InfrastructureRef })

// clusterOfMachine is the KubexmCluster of a KubexmMachine's Cluster.
func clusterOfMachine(reader client.Reader) handler.MapFunc {
	return watch.OfCluster(reader, clusterOf)
}

// addressesChanged passes over what KubexmClusters do not look at: they follow their machines' addresses and deletion.
func addressesChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, isOld := e.ObjectOld.(*infrav1.KubexmMachine)
		updated, isNew := e.ObjectNew.(*infrav1.KubexmMachine)
		return !isOld || !isNew || !equality.Semantic.DeepEqual(old.Status.Addresses, updated.Status.Addresses)
	}}
}

// sharing are the other hosts whose identity a host shares.
func sharing(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		host, ok := object.(*infrav1.KubexmHost)
		if !ok {
			return nil
		}
		all := &infrav1.KubexmHostList{}
		if err := reader.List(ctx, all); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the KubexmHosts that may be the same machine")
			return nil
		}
		var others []ctrl.Request
		for _, key := range reconcilers.SharedBy(host, all.Items) {
			others = append(others, ctrl.Request{NamespacedName: key})
		}
		return others
	}
}

// identityChanged passes what makes hosts one machine or two, and what a host means for its twins. An update is mapped from the old
// object and from the new one, so those that shared what was changed are told as well.
func identityChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, wasHost := e.ObjectOld.(*infrav1.KubexmHost)
		is, isHost := e.ObjectNew.(*infrav1.KubexmHost)
		return wasHost && isHost && (old.Spec.Address != is.Spec.Address || !equality.Semantic.DeepEqual(old.Spec.Access, is.Spec.Access) ||
			old.Spec.ClaimRef != is.Spec.ClaimRef ||
			old.Status.Facts.MachineID != is.Status.Facts.MachineID ||
			conditions.IsFalse(old, infrav1.CleanCondition) != conditions.IsFalse(is, infrav1.CleanCondition))
	}}
}

// templatesOfHost are the templates whose Machines may get a host.
func templatesOfHost(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		templates := &infrav1.KubexmMachineTemplateList{}
		if err := reader.List(ctx, templates, client.InNamespace(object.GetNamespace())); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the KubexmMachineTemplates of a host", "namespace", object.GetNamespace())
			return nil
		}
		var all []ctrl.Request
		for i := range templates.Items {
			all = append(all, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&templates.Items[i])})
		}
		return all
	}
}

// capacityChanged passes what templates say of hosts.
func capacityChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, wasHost := e.ObjectOld.(*infrav1.KubexmHost)
		is, isHost := e.ObjectNew.(*infrav1.KubexmHost)
		return wasHost && isHost &&
			(!equality.Semantic.DeepEqual(old.CapacityOf(), is.CapacityOf()) || !equality.Semantic.DeepEqual(old.Labels, is.Labels) ||
				old.Spec.Arch != is.Spec.Arch || old.Status.Facts.Arch != is.Status.Facts.Arch)
	}}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// List is a list of a kind, an object of which is nothing but data that comes and goes as JSON.
type List[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []T `json:"items"`
}

// DeepCopyObject copies it.
func (l *List[T]) DeepCopyObject() runtime.Object { return Copy(l) }

// Copy copies what is nothing but data that comes and goes as JSON.
func Copy[T any](object *T) *T {
	out := new(T)
	content, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(content, out)
	}
	if err != nil {
		return nil
	}
	return out
}

// ReadOfCluster reads the provider's object of a Cluster, and whose it is: nil where it is gone, or nobody's yet.
func (p *Provider) ReadOfCluster(ctx context.Context, request ctrl.Request, object client.Object) (*clusterv1.Cluster, error) {
	if err := p.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return util.GetOwnerCluster(ctx, p.Client, said(object))
}

// ReadOfMachine reads the provider's object of a Machine, and whose it is: nil where it is gone, or nobody's yet.
func (p *Provider) ReadOfMachine(
	ctx context.Context, request ctrl.Request, object client.Object,
) (*clusterv1.Machine, *clusterv1.Cluster, error) {
	if err := p.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	machine, err := util.GetOwnerMachine(ctx, p.Client, said(object))
	if err != nil || machine == nil {
		return nil, nil, err
	}
	cluster, err := util.GetClusterFromMetadata(ctx, p.Client, said(object))
	return machine, cluster, err
}

// said is by what Cluster API finds whose an object is.
func said(object client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: object.GetNamespace(), Labels: object.GetLabels(), OwnerReferences: object.GetOwnerReferences()}
}

// Patch writes what differs between an object and what it was before: its status, and all else.
func (p *Provider) Patch(ctx context.Context, object, before client.Object) error {
	// Each patch answers with the whole object, as it was stored.
	status, isObject := object.DeepCopyObject().(client.Object)
	if !isObject {
		return fmt.Errorf("%T is no object", object)
	}
	return errors.Join(
		p.Client.Status().Patch(ctx, status, client.MergeFrom(before)),
		p.Client.Patch(ctx, object, client.MergeFrom(before)),
	)
}

// Release takes a finalizer from an object that is deleted.
func (p *Provider) Release(ctx context.Context, object client.Object, finalizer string) error {
	before, isObject := object.DeepCopyObject().(client.Object)
	if !isObject {
		return fmt.Errorf("%T is no object", object)
	}
	controllerutil.RemoveFinalizer(object, finalizer)
	return client.IgnoreNotFound(p.Client.Patch(ctx, object, client.MergeFrom(before)))
}

// ReleaseAfter does so once a Cluster has no objects any more of the kind of a list. Until then it asks again.
func (p *Provider) ReleaseAfter(
	ctx context.Context, machines client.ObjectList, of *clusterv1.Cluster, again time.Duration, object client.Object, finalizer string,
) (ctrl.Result, error) {
	if err := p.Client.List(ctx, machines, client.InNamespace(object.GetNamespace()), client.MatchingLabels{
		clusterv1.ClusterNameLabel: of.Name,
	}); err != nil {
		return ctrl.Result{}, err
	}
	if meta.LenList(machines) > 0 {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{}, p.Release(ctx, object, finalizer)
}

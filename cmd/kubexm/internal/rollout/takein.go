// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TakeIn declares a cluster that runs to a management plane that knows nothing of it, with a Machine for each of its control plane hosts:
// one after the other, the first would find members of etcd that no Machine has. The cluster is paused meanwhile, so that nobody makes
// anything of a part of it; it goes on when the objects are applied. It may be cut and done again, and does nothing to a cluster that is
// declared and not paused.
func TakeIn(ctx context.Context, c client.Client, all []client.Object) error {
	paused := make([]client.Object, 0, len(all))
	plane := &snapshot.ControlPlane{Cluster: &clusterv1.Cluster{}}
	for _, object := range all {
		if cluster, is := object.(*clusterv1.Cluster); is {
			err := c.Get(ctx, client.ObjectKeyFromObject(cluster), plane.Cluster)
			if client.IgnoreNotFound(err) != nil || err == nil && !ptr.Deref(plane.Cluster.Spec.Paused, false) {
				return err
			}
			cluster = cluster.DeepCopy()
			cluster.Spec.Paused = ptr.To(true)
			object = cluster
		}
		paused = append(paused, object)
	}
	if _, err := Apply(ctx, c, paused); err != nil {
		return err
	}
	var key client.ObjectKey
	var hosts []string
	for _, object := range all {
		switch o := object.(type) {
		case *clusterv1.Cluster:
			key = client.ObjectKeyFromObject(o)
		case *infrav1.KubexmHost:
			if objects.IsControlPlane(o.Labels[objects.PoolLabel]) {
				hosts = append(hosts, o.Name)
			}
		}
	}
	s, err := Read(ctx, c, key)
	if err != nil {
		return err
	}
	if s.Cluster == nil || s.ControlPlane == nil {
		return fmt.Errorf("the objects of cluster %s are not there any more", key.Name)
	}
	plane.Cluster, plane.Object = s.Cluster, s.ControlPlane
	mode := spec.BootstrapInit // which host began is not known, and makes no difference to one that is a part of the cluster
	for _, host := range hosts {
		if err := takeIn(ctx, c, plane, host, mode); err != nil {
			return fmt.Errorf("declare the Machine of the control plane host %s: %w", host, err)
		}
		mode = spec.BootstrapJoin
	}
	return nil
}

// takeIn makes the objects that a control plane Machine consists of, those that are not there.
func takeIn(ctx context.Context, c client.Client, plane *snapshot.ControlPlane, host string, mode spec.BootstrapMode) error {
	sum := sha256.Sum256([]byte(host))
	name := plane.Object.Name + "-" + hex.EncodeToString(sum[:4])
	if err := c.Create(ctx, desired.Config(plane, name, mode)); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	infrastructure := &infrav1.KubexmMachine{}
	err := c.Get(ctx, client.ObjectKey{Namespace: plane.Object.Namespace, Name: name}, infrastructure)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachine", Name: name}
	if err != nil {
		owner := desired.Owner(plane.Object)
		owner.Controller, owner.BlockOwnerDeletion = nil, nil
		template := plane.Object.Spec.MachineTemplate.Spec.InfrastructureRef
		if _, ref, err = external.CreateFromTemplate(ctx, &external.CreateFromTemplateInput{
			Client: c, Namespace: plane.Object.Namespace, Name: name, ClusterName: plane.Cluster.Name, OwnerRef: &owner,
			TemplateRef: &corev1.ObjectReference{
				APIVersion: infrav1.GroupVersion.String(), Kind: template.Kind, Namespace: plane.Object.Namespace, Name: template.Name,
			},
			Labels: desired.Labels(plane), Annotations: desired.Annotations(plane),
		}); err != nil {
			return err
		}
	}
	machine := desired.Machine(plane, name, ref)
	// The host is a member for certain: no list of members is made before all addresses are known.
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, bootstrapv1.HostResetHook, "")
	if err := c.Create(ctx, machine); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

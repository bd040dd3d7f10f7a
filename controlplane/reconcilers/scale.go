// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/storage/names"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// scale makes the Machine that is missing, or deletes the one that is too many.
func (r *ControlPlane) scale(ctx context.Context, s *scope) error {
	template, err := r.template(ctx, s)
	if err != nil || template == nil {
		return err
	}
	switch {
	case !s.Cluster.DeletionTimestamp.IsZero():
		s.blocked = "the Cluster is being deleted"
		return nil
	case !s.InfrastructureProvisioned():
		s.blocked = "the Cluster's infrastructure is not provisioned yet"
		return nil
	case s.Lost():
		s.blocked = "the cluster's data was on the Machines that are gone: delete the Cluster, or restore a backup into a new one"
		return nil
	}
	if d := s.Scale(); !d.Create && d.Delete == nil {
		s.blocked = d.Blocked
		return nil
	}
	// The cache may not show yet the Machine that was made, or deleted, a moment ago.
	if s.Machines, err = machinesOf(ctx, r.Reader, s.Cluster); err != nil {
		return err
	}
	d := s.Scale()
	s.blocked = d.Blocked
	switch {
	case d.Create:
		return r.create(ctx, s, template, d.Order)
	case d.Delete != nil:
		return r.remove(ctx, s, d.Delete)
	}
	return nil
}

// remove deletes a Machine.
func (r *ControlPlane) remove(ctx context.Context, s *scope, m *clusterv1.Machine) error {
	if err := r.Client.Delete(ctx, m); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the Machine %s: %w", m.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Deleted a control plane Machine", "Machine", m.Name)
	r.Events.Eventf(s.Object, m, corev1.EventTypeNormal, "MachineDeleted", "Scale", "deleted the Machine %s", m.Name)
	return nil
}

// template is what infrastructure machines are made from; nil while it does not exist. It is owned by the Cluster, so that it
// moves and goes with it.
func (r *ControlPlane) template(ctx context.Context, s *scope) (*unstructured.Unstructured, error) {
	ref := s.Object.Spec.MachineTemplate.Spec.InfrastructureRef
	found, err := external.GetObjectFromContractVersionedRef(ctx, r.Reader, ref, s.Object.Namespace)
	if apierrors.IsNotFound(err) {
		s.blocked = fmt.Sprintf("the %s %s does not exist (spec.machineTemplate.spec.infrastructureRef)", ref.Kind, ref.Name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the %s %s: %w", ref.Kind, ref.Name, err)
	}
	before := found.DeepCopy()
	if owners, changed := ownedBy(found.GetOwnerReferences(), s.Cluster); changed {
		found.SetOwnerReferences(owners)
		if err := r.Client.Patch(ctx, found, client.MergeFrom(before)); err != nil {
			return nil, fmt.Errorf("make the Cluster the owner of the %s %s: %w", ref.Kind, ref.Name, err)
		}
	}
	return found, nil
}

// create makes a Machine and what it consists of. If it cannot be completed, nothing of it is left.
func (r *ControlPlane) create(ctx context.Context, s *scope, template *unstructured.Unstructured, order spec.Order) (err error) {
	name := names.SimpleNameGenerator.GenerateName(s.Object.Name + "-")
	var made []client.Object
	defer func() {
		if err == nil {
			return
		}
		for _, object := range made {
			if failed := r.Client.Delete(context.WithoutCancel(ctx), object); client.IgnoreNotFound(failed) != nil {
				err = errors.Join(err, failed)
			}
		}
		r.Events.Eventf(s.Object, nil, corev1.EventTypeWarning, "MachineNotCreated", "Scale", "%v", err)
	}()

	owner := desired.Owner(s.Object)
	owner.Controller, owner.BlockOwnerDeletion = nil, nil
	machine, ref, err := external.CreateFromTemplate(ctx, &external.CreateFromTemplateInput{
		Client: r.Client,
		TemplateRef: &corev1.ObjectReference{
			APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(), Name: template.GetName(),
		},
		Namespace: s.Object.Namespace, Name: name, ClusterName: s.Cluster.Name, OwnerRef: &owner,
		Labels: desired.Labels(s.ControlPlane), Annotations: desired.Annotations(s.ControlPlane),
	})
	if err != nil {
		return fmt.Errorf("make an infrastructure machine from the %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	made = append(made, machine)
	config := desired.Config(s.ControlPlane, name, order)
	if err := r.Client.Create(ctx, config); err != nil {
		return fmt.Errorf("create the KubexmConfig %s: %w", name, err)
	}
	made = append(made, config)
	m := desired.Machine(s.ControlPlane, name, ref)
	if err := r.Client.Create(ctx, m); err != nil {
		return fmt.Errorf("create the Machine %s: %w", name, err)
	}
	s.Machines = append(s.Machines, *m)
	ctrl.LoggerFrom(ctx).Info("Created a control plane Machine", "Machine", name)
	r.Events.Eventf(s.Object, m, corev1.EventTypeNormal, "MachineCreated", "Scale", "created the Machine %s", name)
	return nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
)

// reconcileMachines makes, deletes or changes the one Machine whose turn it is.
func (r *KubexmControlPlaneReconciler) reconcileMachines(ctx context.Context, s *scope) error {
	template, err := r.template(ctx, s)
	if err != nil || template == nil {
		return err
	}
	switch {
	case !s.Cluster.DeletionTimestamp.IsZero():
		s.blocked = decision.Block(clusterv1.DeletingReason, "the Cluster is being deleted")
		return nil
	case !s.InfrastructureProvisioned():
		s.blocked = decision.Block(controlplanev1.WaitingForInfrastructureReason, "the Cluster's infrastructure is not provisioned yet")
		return nil
	case s.EndpointConflicts():
		s.blocked = decision.Block(bootstrapv1.InvalidReason, "the Cluster's spec.controlPlaneEndpoint is %s, and this "+
			"spec.controlPlaneEndpoint %s: leave it out of the infrastructure cluster, and create the Cluster anew",
			s.Cluster.Spec.ControlPlaneEndpoint.String(), s.Object.Spec.ControlPlaneEndpoint.String())
		return nil
	case s.Lost():
		s.blocked = decision.Block(controlplanev1.NotAvailableReason,
			"the cluster's data was on the Machines that do not exist: restore these objects, or delete the Cluster and restore a backup of "+
				"etcd into a new one")
		return nil
	}
	if s.Approved() {
		delete(s.Object.Annotations, controlplanev1.ApprovedDisruptionAnnotation) // what it was for is done
	}
	if s.RolledOut() {
		// Another rollout is another snapshot, and another consent: what these were for is done, or was taken back.
		delete(s.Object.Annotations, controlplanev1.EtcdSavedAnnotation)
		delete(s.Object.Annotations, controlplanev1.AcceptedRemovedAPIsAnnotation)
	}
	if d := s.Decide(); !d.Create && d.Delete == nil && d.Follow == nil {
		return r.wait(ctx, s, d)
	}
	// The cache may not show yet the Machine that was made, deleted or changed a moment ago.
	if s.Machines, err = machinesOf(ctx, r.Reader, s.Cluster); err != nil {
		return err
	}
	d := s.Decide()
	if d.EtcdSaved {
		metav1.SetMetaDataAnnotation(&s.Object.ObjectMeta, controlplanev1.EtcdSavedAnnotation, s.Object.Spec.Version)
	}
	switch {
	case d.Create:
		return r.create(ctx, s, template, d)
	case d.Delete != nil:
		return r.remove(ctx, s, d.Delete, d.Why)
	case d.Follow != nil:
		return r.follow(ctx, s, d.Follow, d.Why)
	}
	return r.wait(ctx, s, d)
}

// wait says why nothing is done, and has hosts asked for what that waits for.
func (r *KubexmControlPlaneReconciler) wait(ctx context.Context, s *scope, d snapshot.Decision) error {
	s.blocked, s.wait, s.preflight = d.Blocked, d.Wait, d.Preflight
	if d.Save != nil {
		if err := r.askHost(ctx, s, d.Save, bootstrapv1.SaveEtcdAnnotation); err != nil {
			return err
		}
		r.Events.Eventf(s.Object, d.Save, corev1.EventTypeNormal, "SavingEtcdSnapshot", "Rollout",
			"a snapshot of etcd is saved on the host of the Machine %s before %s is rolled out", d.Save.Name, s.Object.Spec.Version)
	}
	return r.askEtcd(ctx, s, d.Ask)
}

// remove deletes a Machine.
func (r *KubexmControlPlaneReconciler) remove(ctx context.Context, s *scope, m *clusterv1.Machine, why string) error {
	if err := r.Client.Delete(ctx, m); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the Machine %s: %w", m.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Deleted a control plane Machine", "Machine", m.Name, "why", why)
	r.Events.Eventf(s.Object, m, corev1.EventTypeNormal, "MachineDeleted", "Scale", "deleted the Machine %s: %s", m.Name, why)
	return nil
}

// follow gives a Machine the declared version: its host is updated in place.
func (r *KubexmControlPlaneReconciler) follow(ctx context.Context, s *scope, m *clusterv1.Machine, why string) error {
	before := m.DeepCopy()
	m.Spec.Version = s.Object.Spec.Version
	// What was decided of the Machine holds as long as it is what it was.
	if err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("set the version of Machine %s to %s: %w", m.Name, s.Object.Spec.Version, err)
	}
	if i := slices.IndexFunc(s.Machines, func(other clusterv1.Machine) bool { return other.UID == m.UID }); i >= 0 {
		s.Machines[i] = *m
	}
	ctrl.LoggerFrom(ctx).Info("Updated a Machine's version", "Machine", m.Name, "version", m.Spec.Version, "before", before.Spec.Version)
	r.Events.Eventf(s.Object, m, corev1.EventTypeNormal, "MachineUpdated", "Rollout", "updating the host of Machine %s in place: %s", m.Name, why)
	return nil
}

// template is what infrastructure machines are made from; nil while it does not exist. It is owned by the Cluster, so that it
// moves and goes with it.
func (r *KubexmControlPlaneReconciler) template(ctx context.Context, s *scope) (*unstructured.Unstructured, error) {
	ref := s.Object.Spec.MachineTemplate.Spec.InfrastructureRef
	found, err := external.GetObjectFromContractVersionedRef(ctx, r.Reader, ref, s.Object.Namespace)
	if apierrors.IsNotFound(err) {
		s.blocked = decision.Block(controlplanev1.NotAvailableReason,
			"the %s %s does not exist (spec.machineTemplate.spec.infrastructureRef)", ref.Kind, ref.Name)
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

// templateAgain is when a template that does not exist is asked for again. Templates of infrastructure providers are not watched.
const templateAgain = 15 * time.Second

// randomLetters tell the names of Machines apart.
const randomLetters = 5

// create makes a Machine and what it consists of. If it cannot be completed, nothing of it is left.
func (r *KubexmControlPlaneReconciler) create(
	ctx context.Context, s *scope, template *unstructured.Unstructured, d snapshot.Decision,
) (err error) {
	if err := r.discard(ctx, s, template); err != nil {
		return err
	}
	// Who chooses the new Machine's host spreads it among those that stay: that others are outdated is written before there is the new one.
	if err := r.reportOnMachines(ctx, s); err != nil {
		return fmt.Errorf("conditions of Machines: %w", err)
	}
	name, err := s.Object.Spec.MachineNaming.Name(s.Cluster.Name, s.Object.Name, rand.String(randomLetters))
	if err != nil {
		return fmt.Errorf("spec.machineNaming.template: %w", err)
	}
	// An error does not say that the object was not made, such as when the process is asked to end in between: so each is among
	// those to delete before it is tried. The Machine goes first, that nobody looks for what it consists of, and the KubexmConfig
	// last: by it discard finds the rest.
	var made []client.Object
	failed := func(what string, err error) error {
		if apierrors.IsAlreadyExists(err) { // it is somebody else's
			made = made[:len(made)-1]
		}
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() {
		if err == nil {
			return
		}
		for _, object := range slices.Backward(made) {
			if failed := r.Client.Delete(context.WithoutCancel(ctx), object); client.IgnoreNotFound(failed) != nil {
				err = errors.Join(err, failed)
			}
		}
		r.Events.Eventf(s.Object, nil, corev1.EventTypeWarning, "MachineNotCreated", "Scale", "%v", err)
	}()

	config := desired.Config(s.ControlPlane, name, d.BootstrapMode)
	made = append(made, config)
	if err := r.Client.Create(ctx, config); err != nil {
		return failed("create the KubexmConfig "+name, err)
	}
	owner := desired.Owner(s.Object)
	owner.Controller, owner.BlockOwnerDeletion = nil, nil
	made = append(made, infrastructureMachine(template, name))
	_, ref, err := external.CreateFromTemplate(ctx, &external.CreateFromTemplateInput{
		Client: r.Client,
		TemplateRef: &corev1.ObjectReference{
			APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(), Name: template.GetName(),
		},
		Namespace: s.Object.Namespace, Name: name, ClusterName: s.Cluster.Name, OwnerRef: &owner,
		Labels: desired.Labels(s.ControlPlane), Annotations: desired.Annotations(s.ControlPlane),
	})
	if err != nil {
		return failed(fmt.Sprintf("make an infrastructure machine from the %s %s", template.GetKind(), template.GetName()), err)
	}
	m := desired.Machine(s.ControlPlane, name, ref)
	if record := s.ForNew(); record != nil {
		value, err := record.Annotation()
		if err != nil {
			return fmt.Errorf("record of the Machine %s: %w", record.Machine, err)
		}
		m.Annotations[controlplanev1.RemediationForAnnotation] = value
	}
	made = append(made, m)
	if err := r.Client.Create(ctx, m); err != nil {
		return failed("create the Machine "+name, err)
	}
	s.Machines = append(s.Machines, *m)
	delete(s.Object.Annotations, controlplanev1.RemediationInProgressAnnotation) // the new Machine has it
	ctrl.LoggerFrom(ctx).Info("Created a control plane Machine", "Machine", name, "why", d.Why)
	r.Events.Eventf(s.Object, m, corev1.EventTypeNormal, "MachineCreated", "Scale", "created the Machine %s: %s", name, d.Why)
	return nil
}

// infrastructureMachine is what is made from a template under a name.
func infrastructureMachine(template *unstructured.Unstructured, name string) *unstructured.Unstructured {
	machine := &unstructured.Unstructured{}
	machine.SetAPIVersion(template.GetAPIVersion())
	machine.SetKind(strings.TrimSuffix(template.GetKind(), clusterv1.TemplateSuffix))
	machine.SetNamespace(template.GetNamespace())
	machine.SetName(name)
	return machine
}

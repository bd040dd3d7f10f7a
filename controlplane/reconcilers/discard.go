// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
)

// discard deletes what Machines were to consist of that were never made, because the process was killed on the way to them.
func (r *KubexmControlPlaneReconciler) discard(ctx context.Context, s *scope, template *unstructured.Unstructured) error {
	all := &bootstrapv1.KubexmConfigList{}
	labels := client.MatchingLabels{
		clusterv1.ClusterNameLabel:             s.Cluster.Name,
		clusterv1.MachineControlPlaneNameLabel: desired.Labels(s.ControlPlane)[clusterv1.MachineControlPlaneNameLabel],
	}
	if err := r.Reader.List(ctx, all, client.InNamespace(s.Object.Namespace), labels); err != nil {
		return fmt.Errorf("list the KubexmConfigs of the control plane: %w", err)
	}
	for i := range all.Items {
		config := &all.Items[i]
		if !s.unfinished(config) {
			continue
		}
		if err := r.discardInfrastructure(ctx, config, template); err != nil {
			return err
		}
		if err := r.Client.Delete(ctx, config); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the KubexmConfig %s, which has no Machine: %w", config.Name, err)
		}
	}
	return nil
}

// discardInfrastructure deletes the infrastructure machine that was made with a KubexmConfig. One of the same name that has other labels,
// or is a Machine's, is somebody else's.
func (r *KubexmControlPlaneReconciler) discardInfrastructure(
	ctx context.Context, config *bootstrapv1.KubexmConfig, template *unstructured.Unstructured,
) error {
	machine := infrastructureMachine(template, config.Name)
	switch err := r.Reader.Get(ctx, client.ObjectKeyFromObject(machine), machine); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the %s %s: %w", machine.GetKind(), config.Name, err)
	}
	for _, label := range []string{clusterv1.ClusterNameLabel, clusterv1.MachineControlPlaneNameLabel} {
		if machine.GetLabels()[label] != config.Labels[label] {
			return nil
		}
	}
	if isMachines(machine) {
		return nil
	}
	err := r.Client.Delete(ctx, machine, client.Preconditions{UID: ptr.To(machine.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the %s %s, which has no Machine: %w", machine.GetKind(), config.Name, err)
	}
	return nil
}

// isMachines reports whether an object belongs to a Machine.
func isMachines(object client.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == "Machine" })
}

// unfinished reports whether a KubexmConfig was made for a Machine that was not.
func (s *scope) unfinished(config *bootstrapv1.KubexmConfig) bool {
	return config.DeletionTimestamp.IsZero() && config.Spec.HostRef.Name == "" &&
		!isMachines(config) &&
		!slices.ContainsFunc(s.Machines, func(m clusterv1.Machine) bool { return m.Name == config.Name })
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		for _, object := range []client.Object{infrastructureMachine(template, config.Name), config} {
			if err := r.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete the %T %s, which has no Machine: %w", object, config.Name, err)
			}
		}
	}
	return nil
}

// unfinished reports whether a KubexmConfig was made for a Machine that was not.
func (s *scope) unfinished(config *bootstrapv1.KubexmConfig) bool {
	return config.DeletionTimestamp.IsZero() && config.Spec.HostRef.Name == "" &&
		!slices.ContainsFunc(config.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Machine" }) &&
		!slices.ContainsFunc(s.Machines, func(m clusterv1.Machine) bool { return m.Name == config.Name })
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// target are the KubexmConfigs that an operation is for, by name. Those whose hosts leave are none of them.
func (r *KubexmOperationReconciler) target(
	ctx context.Context, o *bootstrapv1.KubexmOperation, v verb,
) ([]bootstrapv1.KubexmConfig, error) {
	configs, machines := &bootstrapv1.KubexmConfigList{}, &clusterv1.MachineList{}
	if err := r.Client.List(ctx, configs, client.InNamespace(o.Namespace)); err != nil {
		return nil, fmt.Errorf("list the KubexmConfigs: %w", err)
	}
	if err := r.Client.List(ctx, machines, client.InNamespace(o.Namespace)); err != nil {
		return nil, fmt.Errorf("list the Machines: %w", err)
	}
	byConfig := map[string]*clusterv1.Machine{}
	for i := range machines.Items {
		if ref := machines.Items[i].Spec.Bootstrap.ConfigRef; ref.GroupKind() == bootstrapv1.GroupVersion.WithKind("KubexmConfig").GroupKind() {
			byConfig[ref.Name] = &machines.Items[i]
		}
	}
	picked := pick(o.Spec.Target, o.Labels[clusterv1.ClusterNameLabel], configs.Items, byConfig)
	if v.on == nil {
		return picked, nil
	}
	clusters := &bootstrapv1.KubexmClusterConfigList{}
	if err := r.Client.List(ctx, clusters, client.InNamespace(o.Namespace)); err != nil {
		return nil, fmt.Errorf("list the KubexmClusterConfigs: %w", err)
	}
	return slices.DeleteFunc(picked, func(c bootstrapv1.KubexmConfig) bool {
		at := slices.IndexFunc(clusters.Items, func(cluster bootstrapv1.KubexmClusterConfig) bool {
			return cluster.Name == c.Labels[clusterv1.ClusterNameLabel]
		})
		return at < 0 || !v.on(&clusters.Items[at].Spec, &c, &o.Spec)
	}), nil
}

// pick is pure. Of a Cluster that is named, it picks no other one's: names of hosts are unique within a Cluster alone.
func pick(
	target bootstrapv1.OperationTarget, cluster string, configs []bootstrapv1.KubexmConfig, machines map[string]*clusterv1.Machine,
) []bootstrapv1.KubexmConfig {
	picked := slices.DeleteFunc(configs, func(c bootstrapv1.KubexmConfig) bool {
		machine := machines[c.Name]
		leaves := !c.DeletionTimestamp.IsZero() || machine != nil && !machine.DeletionTimestamp.IsZero()
		of := c.Labels[clusterv1.ClusterNameLabel]
		return leaves || of == "" || cluster != "" && of != cluster || !isMeant(target, &c, machine)
	})
	slices.SortFunc(picked, func(a, b bootstrapv1.KubexmConfig) int { return cmp.Compare(a.Name, b.Name) })
	return picked
}

// clustersOf are the Clusters whose these hosts are, in order.
func clustersOf(configs []bootstrapv1.KubexmConfig) []string {
	var names []string
	for i := range configs {
		names = append(names, configs[i].Labels[clusterv1.ClusterNameLabel])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func isMeant(target bootstrapv1.OperationTarget, c *bootstrapv1.KubexmConfig, machine *clusterv1.Machine) bool {
	switch target.Kind {
	case bootstrapv1.HostTarget:
		return c.Status.Host.Name == target.Name || c.Spec.HostRef.Name == target.Name
	case bootstrapv1.ClusterTarget:
		return c.Labels[clusterv1.ClusterNameLabel] == target.Name
	case bootstrapv1.MachineTarget:
		return machine != nil && machine.Name == target.Name
	case bootstrapv1.MachineDeploymentTarget:
		return machine != nil && machine.Labels[clusterv1.MachineDeploymentNameLabel] == target.Name
	case bootstrapv1.ControlPlaneTarget:
		if machine == nil {
			return false
		}
		owner := metav1.GetControllerOf(machine)
		_, isControlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
		return isControlPlane && owner != nil && owner.Name == target.Name
	}
	return false
}

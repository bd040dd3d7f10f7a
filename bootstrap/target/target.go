// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// New is what a host must be. machine is nil where the host does not become a Node. host is the host as its infrastructure has it; its
// role is that of the objects. labels are those by which the infrastructure finds the Node. The error has the path of every field that is
// wrong, as seen from the target.
func New(
	shared *Shared, machine *clusterv1.Machine, config *bootstrapv1.KubexmConfig, host spec.Host, labels map[string]string,
) (spec.Target, error) {
	t := spec.Target{
		ClusterName:       shared.cluster.Name,
		KubernetesVersion: shared.config.Version,
		Cluster:           *shared.Cluster.DeepCopy(),
		Node:              *config.Spec.Node.DeepCopy(),
		Host:              shared.Host(host, RoleOf(machine, config)),
		BootstrapMode:     config.Spec.BootstrapMode,
	}
	if len(labels) > 0 && t.Node.NodeLabels == nil {
		t.Node.NodeLabels = map[string]string{}
	}
	maps.Copy(t.Node.NodeLabels, labels)
	if machine != nil {
		t.KubernetesVersion = shared.versionOf(machine, t.Host.Role)
		limitDrain(&t, machine)
	}
	shared.addMembers(&t)
	withoutPolicies(&t)
	if !t.HasEtcdMember() {
		t.Cluster.Etcd.GoneMembers = nil // which members are gone concerns those that have one
	}
	t.Default()
	if errs := t.ValidateRules(field.NewPath("target")); len(errs) > 0 {
		return t, errs.ToAggregate()
	}
	if t.Host.Role == spec.RoleWorker {
		// Not before the validation, which keeps users from setting it: Cluster API takes it off again when the Node has
		// the Machine's labels (contract of bootstrap providers, "Taint Nodes at creation").
		t.Node.NodeTaints = append(slices.Clip(t.Node.NodeTaints), corev1.Taint{
			Key: clusterv1.NodeUninitializedTaint.Key, Effect: clusterv1.NodeUninitializedTaint.Effect,
		})
	}
	return t, nil
}

// Reset is what is left to say of a host whose cluster is not known any more, and whose changes are undone.
func Reset(cluster string, host spec.Host) spec.Target {
	return spec.Target{ClusterName: cluster, Host: host}
}

// Unmanaged are targets of a cluster that Cluster API does not manage: workers have no taint, which nobody would take off again.
func Unmanaged(targets []spec.Target) []spec.Target {
	targets = slices.Clone(targets)
	for i := range targets {
		node := &targets[i].Node
		node.NodeTaints = slices.DeleteFunc(slices.Clone(node.NodeTaints), func(taint corev1.Taint) bool {
			return taint.Key == clusterv1.NodeUninitializedTaint.Key
		})
	}
	return targets
}

// RoleOf is what a host is for.
func RoleOf(machine *clusterv1.Machine, config *bootstrapv1.KubexmConfig) spec.Role {
	if role := config.Spec.HostRef.Role; role != "" {
		return role
	}
	if machine != nil {
		if _, yes := machine.Labels[clusterv1.MachineControlPlaneLabel]; yes {
			return spec.RoleControlPlane
		}
	}
	return spec.RoleWorker
}

// limitDrain gives a drain before programs are replaced as long as the Machine gives one before it is deleted, where limits do not
// say otherwise. (There, 0 is for ever; here, it is for the step to say.)
func limitDrain(t *spec.Target, machine *clusterv1.Machine) {
	const most = 24 * 60 * 60 // of a limit
	limit := spec.Limit{Step: "node/drain"}
	seconds := min(ptr.Deref(machine.Spec.Deletion.NodeDrainTimeoutSeconds, 0), most)
	ofDrain := func(l spec.Limit) bool { return l.Step == limit.Step }
	// The host's own limit of a step comes in the place of the cluster's, so what that says else is said again.
	if i := slices.IndexFunc(t.Cluster.Limits, ofDrain); i >= 0 {
		limit = t.Cluster.Limits[i]
	}
	own := slices.IndexFunc(t.Node.Limits, ofDrain)
	if own >= 0 {
		limit = t.Node.Limits[own]
	}
	if seconds <= 0 || limit.TimeoutSeconds != 0 {
		return
	}
	limit.TimeoutSeconds = seconds
	if own >= 0 {
		t.Node.Limits[own] = limit
		return
	}
	t.Node.Limits = append(t.Node.Limits, limit)
}

// withoutPolicies takes from a target what says when and how its host is changed, and not what it must be: a change of it is nothing to
// run for.
func withoutPolicies(t *spec.Target) {
	t.Cluster.Disruption, t.Node.Disruption = spec.Disruption{}, spec.Disruption{}
	t.Cluster.DriftPolicy, t.Node.DriftPolicy = "", ""
	t.Cluster.OnFailure, t.Node.OnFailure = "", ""
	t.Cluster.Reset, t.Node.Reset = spec.Reset{}, spec.Reset{}
}

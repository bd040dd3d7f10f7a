// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// Unsettled is why the control plane should not be changed now, "" if it may be: one act at a time, and only while all of it
// works. What is wrong with except alone, a Machine that is about to go or to be changed, does not count.
func (c *ControlPlane) Unsettled(except *clusterv1.Machine) string {
	if why := c.busy(); why != "" {
		return why
	}
	for _, m := range c.Own() {
		if except != nil && m.Name == except.Name {
			continue
		}
		if why := c.unsettled(&m); why != "" {
			return why
		}
	}
	return ""
}

// busy is why nothing of the control plane may be changed at all, "" if something may.
func (c *ControlPlane) busy() string {
	if !c.Initialized() {
		return "the first host has not begun the control plane yet"
	}
	if why := c.awaitsTopology(); why != "" {
		return why
	}
	for _, m := range c.Own() {
		if !m.DeletionTimestamp.IsZero() {
			return fmt.Sprintf("the Machine %s is being deleted", m.Name)
		}
	}
	return cmp.Or(c.UnknownMember(), c.unseen())
}

// unseen is why nothing is known of the cluster, "" if something is.
func (c *ControlPlane) unseen() string {
	switch w := c.Workload; {
	case w == nil:
		return "the cluster has not been looked at yet"
	case w.Err != nil:
		return fmt.Sprintf("the cluster cannot be looked at: %v", w.Err)
	}
	return ""
}

// unsettled is why a Machine is not a part of the control plane that others can count on, or not as it is to be, "" if it is both.
func (c *ControlPlane) unsettled(m *clusterv1.Machine) string {
	if config := c.ConfigOf(m); config != nil && m.Status.NodeRef.IsDefined() {
		if why := config.Behind(m.Spec.Version); why != "" {
			return fmt.Sprintf("the host of the Machine %s: %s", m.Name, why)
		}
	}
	return c.unwell(m)
}

// unwell is why a Machine is not one to count on, "" if it is. The cluster has been looked at.
func (c *ControlPlane) unwell(m *clusterv1.Machine) string {
	if !m.Status.NodeRef.IsDefined() {
		return c.HasNoNode(m)
	}
	parts, seen := c.Workload.Components[m.Name]
	if !seen {
		return fmt.Sprintf("nothing is known yet of the Machine %s", m.Name)
	}
	for _, part := range parts {
		if part.Problem != "" {
			return fmt.Sprintf("the Machine %s is not well: %s", m.Name, part.Problem)
		}
	}
	if status, why := c.EtcdMember(m); status == metav1.ConditionFalse {
		return fmt.Sprintf("the Machine %s is not well: etcd: %s", m.Name, why)
	}
	return ""
}

// HasNoNode says that a Machine has no Node yet, and what it waits for, such as a host.
func (c *ControlPlane) HasNoNode(m *clusterv1.Machine) string {
	why := fmt.Sprintf("the Machine %s has no Node yet", m.Name)
	said := []*metav1.Condition{
		conditions.Get(m, clusterv1.MachineInfrastructureReadyCondition), conditions.Get(m, clusterv1.MachineBootstrapConfigReadyCondition),
	}
	if config := c.ConfigOf(m); config != nil {
		said = append(said, conditions.Get(config, bootstrapv1.HostReadyCondition))
	}
	for _, now := range said {
		if now != nil && now.Status != metav1.ConditionTrue && now.Message != "" {
			return why + ": " + now.Message
		}
	}
	return why
}

// awaitsTopology is why nothing is changed while a Cluster's topology is about to declare another version, "" otherwise: what
// would be made now would be out of date at once.
func (c *ControlPlane) awaitsTopology() string {
	if c.Cluster == nil || !c.Cluster.Spec.Topology.IsDefined() {
		return ""
	}
	coming, has := c.Cluster.Spec.Topology.Version, c.Object.Spec.Version
	if has == coming || has == c.Cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation] {
		return ""
	}
	return fmt.Sprintf("the version %s of the Cluster's topology is not declared here yet", coming)
}

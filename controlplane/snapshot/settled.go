// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// Reasons of decision.Blockers, beside those of conditions.
const (
	// MachineDeletingReason means that a Machine is being deleted.
	MachineDeletingReason = "MachineDeleting"
	// MachineHasNoNodeReason means that a Machine's host has not become a Node yet.
	MachineHasNoNodeReason = "MachineHasNoNode"
	// MachineUnhealthyReason means that a component of the control plane on a Machine's host has a problem.
	MachineUnhealthyReason = "MachineUnhealthy"
	// WaitingForTopologyReason means that a Cluster's topology is about to declare another version.
	WaitingForTopologyReason = "WaitingForTopology"
	// UnknownEtcdMemberReason means that etcd lists a member that no host of the cluster has.
	UnknownEtcdMemberReason = "UnknownEtcdMember"
	// WaitingForEtcdReason means that members of etcd are asked how they are.
	WaitingForEtcdReason = "WaitingForEtcd"
	// QuorumAtRiskReason means that etcd, or the control plane, would not work without what is to be removed.
	QuorumAtRiskReason = "QuorumAtRisk"
	// ReplacementImpossibleReason means that the specification allows no Machine to be replaced.
	ReplacementImpossibleReason = "ReplacementImpossible"
	// WaitingForEtcdHostsReason means that etcd's own hosts are updated first.
	WaitingForEtcdHostsReason = "WaitingForEtcdHosts"
	// WaitingForHostsReason means that hosts of the inventory stay until those serve that take their place.
	WaitingForHostsReason = "WaitingForHosts"
	// KubeletTooOldReason means that a worker would be too many minor versions older than the API servers.
	KubeletTooOldReason = "KubeletTooOld"
	// HostUnhealthyReason means that a host is to reboot, or cannot be rebooted, or must not be.
	HostUnhealthyReason = "HostUnhealthy"
)

// Unsettled is why the control plane should not be changed now; nil if it may be: one act at a time, and only while all of it
// works. What is wrong with except alone, a Machine that is about to go or to be changed, does not count, nor that a Machine's host waits
// for one of these reasons before it is changed.
func (c *ControlPlane) Unsettled(except *clusterv1.Machine, waits ...string) *decision.Blocker {
	if why := c.blocked(); why != nil {
		return why
	}
	for _, m := range c.Own() {
		if except != nil && m.Name == except.Name || c.onlyWaits(&m, waits...) {
			continue
		}
		if why := c.unsettled(&m); why != nil {
			return why
		}
	}
	return nil
}

// Reasons for which hosts wait before they are changed.
var (
	// forPool are those that other hosts of the pool end.
	forPool = []string{bootstrapv1.WaitingForPoolReason, bootstrapv1.PoolStoppedReason}
	// forAny are all of them. That it is not known what would be disrupted is none: it says nothing good of the host.
	forAny = append([]string{bootstrapv1.WaitingForApprovalReason, bootstrapv1.OutsideMaintenanceWindowReason}, forPool...)
)

// onlyWaits reports whether a Machine's host works as it was, and nothing is begun there yet for one of these reasons.
func (c *ControlPlane) onlyWaits(m *clusterv1.Machine, reasons ...string) bool {
	config := c.ConfigOf(m)
	if config == nil || c.unhealthy(m) != nil {
		return false
	}
	waits, behind := hosthealth.Problem(config, bootstrapv1.DisruptionAllowedCondition), hosthealth.Behind(config, "")
	return waits != nil && slices.Contains(reasons, waits.Reason) && (behind == nil || behind.Reason == hosthealth.ChangeNotObservedReason)
}

// blocked is why nothing of the control plane may be changed at all; nil if something may.
func (c *ControlPlane) blocked() *decision.Blocker {
	if !c.Initialized() {
		return decision.Block(controlplanev1.NotInitializedReason, "the first host has not begun the control plane yet")
	}
	if why := c.awaitsTopology(); why != nil {
		return why
	}
	for _, m := range c.Own() {
		if !m.DeletionTimestamp.IsZero() {
			return beingDeleted(&m)
		}
	}
	return cmp.Or(c.UnknownMember(), c.unseen())
}

// beingDeleted says that a Machine is.
func beingDeleted(m *clusterv1.Machine) *decision.Blocker {
	return decision.Block(MachineDeletingReason, "the Machine %s is being deleted", m.Name)
}

// unseen is why nothing is known of the cluster; nil if something is.
func (c *ControlPlane) unseen() *decision.Blocker {
	switch w := c.Workload; {
	case w == nil:
		return decision.Block(controlplanev1.HealthUnknownReason, "the cluster has not been observed yet")
	case w.Err != nil:
		return decision.Block(controlplanev1.ConnectionDownReason, "the cluster cannot be observed: %v", w.Err)
	}
	return nil
}

// unsettled is why a Machine is not a part of the control plane that others can count on, or not up to date; nil if it is both.
func (c *ControlPlane) unsettled(m *clusterv1.Machine) *decision.Blocker {
	if config := c.ConfigOf(m); config != nil && m.Status.NodeRef.IsDefined() {
		if behind := hosthealth.Behind(config, m.Spec.Version); behind != nil {
			return behind.Prefixed("the host of the Machine %s: ", m.Name)
		}
	}
	return c.unhealthy(m)
}

// unhealthy is why a Machine is not one to count on; nil if it is. The cluster has been observed.
func (c *ControlPlane) unhealthy(m *clusterv1.Machine) *decision.Blocker {
	if !m.Status.NodeRef.IsDefined() {
		return c.HasNoNode(m)
	}
	if c.isToReboot(m) {
		return decision.Block(HostUnhealthyReason, "the host of the Machine %s is to reboot", m.Name)
	}
	parts, seen := c.Workload.Components[m.Name]
	if !seen {
		return decision.Block(controlplanev1.HealthUnknownReason, "nothing is known yet of the Machine %s", m.Name)
	}
	for _, part := range parts {
		switch {
		case part.Unknown:
			return decision.Block(controlplanev1.HealthUnknownReason, "it is not known whether the Machine %s is healthy: %s", m.Name, part.Problem)
		case part.Problem != "":
			return decision.Block(MachineUnhealthyReason, "the Machine %s is not healthy: %s", m.Name, part.Problem)
		}
	}
	if status, why := c.EtcdMember(m); status == metav1.ConditionFalse {
		return decision.Block(MachineUnhealthyReason, "the Machine %s is not healthy: etcd: %s", m.Name, why)
	}
	return nil
}

// isToReboot reports whether a Machine's host was asked to reboot, and has neither said what came of that nor used up the time that it
// has for it. Its components are seen to be well until it goes down.
func (c *ControlPlane) isToReboot(m *clusterv1.Machine) bool {
	config := c.ConfigOf(m)
	if config == nil {
		return false
	}
	asked := config.Asked(bootstrapv1.RebootAnnotation)
	// Where nobody is to be rebooted, somebody may ask all the same.
	timeout := cmp.Or(c.Object.Spec.Remediation.RebootTimeout(), bootstrapv1.RebootTimeout)
	return !asked.IsZero() && c.Now.Sub(asked).Abs() < timeout &&
		hosthealth.Answer(config, bootstrapv1.RebootOperation, asked) == nil
}

// HasNoNode says that a Machine has no Node yet, and what it waits for, such as a host.
func (c *ControlPlane) HasNoNode(m *clusterv1.Machine) *decision.Blocker {
	return decision.Block(MachineHasNoNodeReason, "the Machine %s has no Node yet%s", m.Name, c.awaitsNode(m))
}

// awaitsNode is what a Machine without a Node waits for, behind a colon; "" if nothing says.
func (c *ControlPlane) awaitsNode(m *clusterv1.Machine) string {
	for _, kind := range []string{clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineBootstrapConfigReadyCondition} {
		if now := conditions.Get(m, kind); now != nil && now.Status != metav1.ConditionTrue && now.Message != "" {
			return ": " + now.Message
		}
	}
	if config := c.ConfigOf(m); config != nil {
		if missing := hosthealth.Missing(config); missing != nil {
			return ": " + cmp.Or(missing.Message, missing.Reason)
		}
	}
	return ""
}

// awaitsTopology is why nothing is changed while a Cluster's topology is about to declare another version; nil otherwise: what
// would be made now would be out of date at once.
func (c *ControlPlane) awaitsTopology() *decision.Blocker {
	if c.Cluster == nil || !c.Cluster.Spec.Topology.IsDefined() {
		return nil
	}
	coming, has := c.Cluster.Spec.Topology.Version, c.Object.Spec.Version
	if has == coming || has == c.Cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation] {
		return nil
	}
	return decision.Block(WaitingForTopologyReason, "the version %s of the Cluster's topology is not declared here yet", coming)
}

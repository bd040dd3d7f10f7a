// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot is a control plane at one time, and the decisions that follow from it alone. Nothing here connects to
// anything.
package snapshot

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// ControlPlane is all that one reconcile knows.
type ControlPlane struct {
	Object  *controlplanev1.KubexmControlPlane
	Cluster *clusterv1.Cluster
	// Machines are all of the Cluster's.
	Machines []clusterv1.Machine
	// Configs are all of the Cluster's.
	Configs []bootstrapv1.KubexmConfig
	// Known are the members as the KubexmClusterConfig lists them.
	Known []bootstrapv1.ClusterMember
	// Served is whether something else than the object's status says that the cluster has begun. A move or a restore loses statuses.
	Served bool
	// Templates are what Machines' infrastructure machines were made from, by the Machines' names, as far as it is known.
	Templates map[string]Template
	// Now is when all of this was so.
	Now time.Time
	// Certificates is what is known of the Secrets with the certificate authorities: nil if all is well.
	Certificates error
	// Workload is what was seen through the cluster's own API, nil if it was not observed.
	Workload *Workload
	// APIs is what is known of the APIs that are in use, nil if that was not asked.
	APIs *APIs
}

// Workload is the cluster as seen through its own API.
type Workload struct {
	// Err is why it could not be observed.
	Err error
	// Initialized is whether kubeadm has finished its first control plane host.
	Initialized bool
	// Components are those of the control plane, by the names of their Machines.
	Components map[string][]Component
}

// Component is one part of the control plane on one host.
type Component struct {
	// Condition is the type of the Machine's condition.
	Condition string
	// Problem is what is wrong with it, "" if it is healthy.
	Problem string
	// Unknown is whether that is not known: Problem is why it could not be asked.
	Unknown bool
}

// Conditions of control plane Machines. The names are those that Cluster API's own control plane uses, so that its tools
// group them.
const (
	APIServerPodHealthy         = "APIServerPodHealthy"
	ControllerManagerPodHealthy = "ControllerManagerPodHealthy"
	SchedulerPodHealthy         = "SchedulerPodHealthy"
	EtcdPodHealthy              = "EtcdPodHealthy"
)

// ComponentConditions are all of them.
var ComponentConditions = []string{APIServerPodHealthy, ControllerManagerPodHealthy, SchedulerPodHealthy, EtcdPodHealthy}

// Own are the control plane's Machines, the oldest first.
func (c *ControlPlane) Own() []clusterv1.Machine {
	own := slices.DeleteFunc(slices.Clone(c.Machines), func(m clusterv1.Machine) bool {
		return !IsControlPlane(&m) || !metav1.IsControlledBy(&m, c.Object)
	})
	slices.SortFunc(own, func(a, b clusterv1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return own
}

// Workers are the Cluster's other Machines.
func (c *ControlPlane) Workers() []clusterv1.Machine {
	return slices.DeleteFunc(slices.Clone(c.Machines), func(m clusterv1.Machine) bool { return IsControlPlane(&m) })
}

// IsControlPlane reports whether a Machine is part of a control plane.
func IsControlPlane(m *clusterv1.Machine) bool {
	_, yes := m.Labels[clusterv1.MachineControlPlaneLabel]
	return yes
}

// InfrastructureProvisioned reports whether Machines may be made.
func (c *ControlPlane) InfrastructureProvisioned() bool {
	return ptr.Deref(c.Cluster.Status.Initialization.InfrastructureProvisioned, false)
}

// Initialized reports whether the API server has ever taken requests.
func (c *ControlPlane) Initialized() bool {
	return ptr.Deref(c.Object.Status.Initialization.ControlPlaneInitialized, false)
}

// Begun reports whether there is a cluster, with data that must not be lost: another one is not begun in its place.
func (c *ControlPlane) Begun() bool { return c.Initialized() || c.Served }

// Replicas is how many Machines there must be.
func (c *ControlPlane) Replicas() int {
	if !c.Object.DeletionTimestamp.IsZero() {
		return 0
	}
	return int(ptr.Deref(c.Object.Spec.Replicas, 1))
}

// Lost reports whether the control plane has begun and has no Machine any more, or none yet in a restore.
func (c *ControlPlane) Lost() bool {
	return c.Begun() && len(c.Own()) == 0 && c.Object.DeletionTimestamp.IsZero()
}

// NextFailureDomain is that of the next Machine: of those for control planes the one with the fewest Machines that are up to
// date, then with the fewest at all, or "" where the infrastructure offers none.
func (c *ControlPlane) NextFailureDomain() string {
	current, all := map[string]int{}, map[string]int{}
	for _, m := range c.Own() {
		all[domainOf(&m)]++
		if len(c.Changes(&m)) == 0 && m.DeletionTimestamp.IsZero() {
			current[domainOf(&m)]++
		}
	}
	var offered []string
	for _, d := range c.Cluster.Status.FailureDomains {
		if ptr.Deref(d.ControlPlane, false) {
			offered = append(offered, d.Name)
		}
	}
	if len(offered) == 0 {
		return ""
	}
	return slices.MinFunc(offered, func(a, b string) int {
		return cmp.Or(cmp.Compare(current[a], current[b]), cmp.Compare(all[a], all[b]), cmp.Compare(a, b))
	})
}

// domainOf is the failure domain that a Machine was made for, or else that of the host that it was given.
func domainOf(m *clusterv1.Machine) string {
	return cmp.Or(m.Spec.FailureDomain, m.Status.FailureDomain)
}

// VersionOf is the version of Kubernetes that a Machine has. What its kubelet says counts before what the Machine asks for.
func VersionOf(m *clusterv1.Machine) string {
	if info := m.Status.NodeInfo; info != nil {
		return cmp.Or(info.KubeletVersion, m.Spec.Version)
	}
	return m.Spec.Version
}

// Versions are the versions of Kubernetes that Machines have, the oldest first.
func Versions(machines []clusterv1.Machine) []clusterv1.StatusVersion {
	count := map[string]int32{}
	for i := range machines {
		if v := VersionOf(&machines[i]); v != "" {
			count[v]++
		}
	}
	var versions []clusterv1.StatusVersion
	for v, n := range count {
		versions = append(versions, clusterv1.StatusVersion{Version: v, Replicas: n})
	}
	slices.SortFunc(versions, func(a, b clusterv1.StatusVersion) int { return compareVersions(a.Version, b.Version) })
	return versions
}

func compareVersions(a, b string) int {
	if parsed, err := version.ParseSemantic(a); err == nil {
		if order, err := parsed.Compare(b); err == nil && order != 0 {
			return order
		}
	}
	return cmp.Compare(a, b)
}

// Count is how many Machines have a condition.
func Count(machines []clusterv1.Machine, condition string) int32 {
	var n int32
	for i := range machines {
		if conditions.IsTrue(&machines[i], condition) {
			n++
		}
	}
	return n
}

// Next is when to look at the cluster again: soon while something is on its way.
func (c *ControlPlane) Next() time.Duration {
	if len(c.Own()) == 0 {
		return 0
	}
	if c.Workload != nil && c.Workload.Err != nil {
		return soon
	}
	for _, kind := range []string{
		controlplanev1.AvailableCondition, controlplanev1.ControlPlaneComponentsHealthyCondition,
		controlplanev1.EtcdClusterHealthyCondition,
	} {
		if !conditions.IsTrue(c.Object, kind) {
			return soon
		}
	}
	if slices.ContainsFunc(c.Own(), func(m clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() }) {
		return soon
	}
	for _, kind := range []string{controlplanev1.RollingOutCondition, controlplanev1.ScalingUpCondition,
		controlplanev1.ScalingDownCondition, controlplanev1.RemediatingCondition} {
		if conditions.IsTrue(c.Object, kind) {
			return soon
		}
	}
	return time.Minute
}

// soon is when what nobody reports may have changed, such as a Pod that is Ready now.
const soon = 2 * time.Second

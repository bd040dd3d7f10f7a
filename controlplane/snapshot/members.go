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
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// ConfigOf is a Machine's KubexmConfig, nil if it is not known.
func (c *ControlPlane) ConfigOf(m *clusterv1.Machine) *bootstrapv1.KubexmConfig {
	for i := range c.Configs {
		if c.Configs[i].Name == m.Spec.Bootstrap.ConfigRef.Name {
			return &c.Configs[i]
		}
	}
	return nil
}

// host is one that the control plane, etcd or the load balancers consist of, or that is about to leave them.
type host struct {
	// config is nil where it is not known, such as when a cache does not show it yet; name is its name.
	config *bootstrapv1.KubexmConfig
	name   string
	role   spec.Role
	// etcd is whether it has a member of etcd.
	etcd bool
	// stays is whether nobody deletes it. drained is whether nothing but hooks keeps it: its Node is drained by then; and hasNode
	// whether it has a Node that may have to be.
	stays, drained, hasNode bool
}

// hosts are all of them: those of the control plane's own Machines, and those of the inventory that it controls. A KubexmConfig that
// somebody else has made is none.
func (c *ControlPlane) hosts() []host {
	var hosts []host
	stacked := c.Stacked()
	for _, m := range c.Own() {
		hosts = append(hosts, host{
			config: c.ConfigOf(&m), name: m.Spec.Bootstrap.ConfigRef.Name, role: spec.RoleControlPlane, etcd: stacked,
			stays: m.DeletionTimestamp.IsZero(), drained: !m.DeletionTimestamp.IsZero() && hosthealth.AwaitsHooks(&m),
			hasNode: m.Status.NodeRef.IsDefined(),
		})
	}
	for i := range c.Configs {
		config := &c.Configs[i]
		if !c.Controls(config) {
			continue
		}
		stays := config.DeletionTimestamp.IsZero()
		hosts = append(hosts, host{
			config: config, name: config.Name, role: config.Spec.HostRef.Role, etcd: config.Spec.HostRef.Role == spec.RoleEtcd && !stacked,
			stays: stays, drained: !stays,
		})
	}
	return hosts
}

// Controls reports whether a KubexmConfig is for a host of the inventory that the control plane itself has chosen.
func (c *ControlPlane) Controls(config *bootstrapv1.KubexmConfig) bool {
	return config.Spec.HostRef.Name != "" && metav1.IsControlledBy(config, c.Object)
}

// known is the member that a KubexmConfig was last, nil if it was none.
func (c *ControlPlane) known(configName string) *bootstrapv1.ClusterMember {
	for i := range c.Known {
		if c.Known[i].ConfigName == configName {
			return &c.Known[i]
		}
	}
	return nil
}

// member is what a host is to the others, with its phase left out. Its name is "" while it is not known which host it is.
func (c *ControlPlane) member(h host) bootstrapv1.ClusterMember {
	m := bootstrapv1.ClusterMember{Role: h.role, ConfigName: h.name}
	if h.config != nil {
		seen := h.config.Status.Host
		m.Name, m.Address = cmp.Or(seen.Name, h.config.Spec.HostRef.Name), cmp.Or(seen.InternalAddress, seen.Address)
	}
	// A status can be lost. What was known of the host holds until something else is.
	if was := c.known(h.name); was != nil {
		m.Name, m.Address = cmp.Or(m.Name, was.Name), cmp.Or(m.Address, was.Address)
	}
	return m
}

// Members are the members as they are to be declared, from what was known of them and what is so now, by their names. A member is
// dropped when its Machine, or its KubexmConfig where it has none, does not exist any more, and for nothing else.
func (c *ControlPlane) Members() []bootstrapv1.ClusterMember {
	var members []bootstrapv1.ClusterMember
	hosts := c.hosts()
	// A host that is given to another Machine while the one before is not gone for good is that of the new one.
	slices.SortStableFunc(hosts, func(a, b host) int { return boolToInt(b.stays) - boolToInt(a.stays) })
	for _, h := range hosts {
		m := c.member(h)
		if m.Name == "" || slices.ContainsFunc(members, func(other bootstrapv1.ClusterMember) bool { return other.Name == m.Name }) {
			continue
		}
		m.Phase = c.phase(h)
		members = append(members, m)
	}
	bootstrapv1.SortMembers(members)
	return members
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// missed reports whether a host's etcd member counts for others: whether another host with one stays. Nobody counts on others where
// the whole control plane is deleted.
func (c *ControlPlane) missed(h host) bool {
	return c.Object.DeletionTimestamp.IsZero() && slices.ContainsFunc(c.hosts(), func(other host) bool {
		return other.name != h.name && other.etcd && other.stays && c.member(other).Address != ""
	})
}

// APIServerVersion is the oldest version that an API server of these members has. was is what it was last: where it is not known
// which version a Machine's host has, it is not taken for a newer one. What the host was brought to counts, too: a kubelet says its version
// before the API server beside it is replaced, and may be rolled back with it.
func (c *ControlPlane) APIServerVersion(members []bootstrapv1.ClusterMember, was string) string {
	oldest := ""
	for _, m := range c.Own() {
		i := slices.IndexFunc(members, func(member bootstrapv1.ClusterMember) bool {
			return member.ConfigName == m.Spec.Bootstrap.ConfigRef.Name
		})
		if i < 0 || members[i].Phase != bootstrapv1.MemberServing && members[i].Phase != bootstrapv1.MemberDraining {
			continue
		}
		has, brought, known := VersionOf(&m), "", m.Status.NodeInfo != nil
		if config := c.ConfigOf(&m); config != nil {
			brought = config.Status.KubernetesVersion
			known = known && brought != ""
		}
		if !known {
			brought = was
		}
		if brought != "" && compareVersions(brought, has) < 0 {
			has = brought
		}
		if oldest == "" || compareVersions(has, oldest) < 0 {
			oldest = has
		}
	}
	return cmp.Or(oldest, was)
}

// Unlocated is the name of a KubexmConfig whose host's address is not known though the host is a member for certain, "" if there is
// none, or if a list from before has addresses: what that has holds.
func (c *ControlPlane) Unlocated() string {
	if slices.ContainsFunc(c.Known, func(m bootstrapv1.ClusterMember) bool { return m.Address != "" }) {
		return ""
	}
	touched := func(m clusterv1.Machine) bool { _, held := m.Annotations[bootstrapv1.HostResetHook]; return held }
	begun := slices.ContainsFunc(c.Own(), touched)
	for _, h := range c.hosts() {
		if !begun || c.member(h).Address != "" {
			continue
		}
		own := slices.ContainsFunc(c.Own(), func(m clusterv1.Machine) bool {
			return m.Spec.Bootstrap.ConfigRef.Name == h.name && touched(m)
		})
		if own || h.role != spec.RoleControlPlane && h.stays {
			return h.name
		}
	}
	return ""
}

// Endpoint is where the API server is reached: as the control plane says, or the Cluster. Cluster API copies the former to the latter when
// the control plane is initialized, for which it must be known before.
func (c *ControlPlane) Endpoint() clusterv1.APIEndpoint {
	if c.Object.Spec.ControlPlaneEndpoint.IsValid() {
		return c.Object.Spec.ControlPlaneEndpoint
	}
	return c.Cluster.Spec.ControlPlaneEndpoint
}

// EndpointConflicts reports whether the Cluster has another endpoint than the control plane says.
func (c *ControlPlane) EndpointConflicts() bool {
	own, clusters := c.Object.Spec.ControlPlaneEndpoint, c.Cluster.Spec.ControlPlaneEndpoint
	return own.IsValid() && clusters.IsValid() && own != clusters
}

// Server is the URL of the API for those outside of the cluster. Where each Node has a load balancer of its own, the endpoint is
// the first host's address: when that host has left, or does not answer, it is another's.
func (c *ControlPlane) Server() string {
	endpoint, shared := c.Endpoint(), c.Shared()
	if shared.LoadBalancer.IsLocal() {
		if addresses := c.servers(); len(addresses) > 0 && !slices.Contains(addresses, endpoint.Host) {
			endpoint.Host = addresses[0]
		}
	}
	return "https://" + endpoint.String()
}

// servers are the addresses of hosts with an API server, by the hosts' names: of those that have joined, and that answered when they
// were last tried to be reached, or of all if there are none. A host that is on its way in has no API server yet, and asks another
// one to become a member.
func (c *ControlPlane) servers() []string {
	var answering, all []string
	for _, m := range c.Members() {
		if m.Role != spec.RoleControlPlane || !m.Stays() || m.Address == "" {
			continue
		}
		all = append(all, m.Address)
		i := slices.IndexFunc(c.Configs, func(config bootstrapv1.KubexmConfig) bool { return config.Name == m.ConfigName })
		if m.Phase == bootstrapv1.MemberServing && (i < 0 || !conditions.IsFalse(&c.Configs[i], bootstrapv1.HostReachableCondition)) {
			answering = append(answering, m.Address)
		}
	}
	if len(answering) == 0 {
		return all
	}
	return answering
}

// InventoryConfig is the KubexmConfig of a host that is no Node, nil if there is none yet.
func (c *ControlPlane) InventoryConfig(ref bootstrapv1.HostReference) *bootstrapv1.KubexmConfig {
	for i := range c.Configs {
		if c.Configs[i].Spec.HostRef == ref && c.Controls(&c.Configs[i]) {
			return &c.Configs[i]
		}
	}
	return nil
}

// MayTerminate reports whether a Machine that is being deleted may take its host out of the cluster.
func (c *ControlPlane) MayTerminate(m *clusterv1.Machine) bool {
	config := c.ConfigOf(m)
	return config == nil || c.MayLeave(config)
}

// MayLeave reports whether a host may go: its etcd member is gone, or it has none, or nobody stays who would miss it. That the member
// is gone is seen by a host that stays, which was brought to the very list that says so.
func (c *ControlPlane) MayLeave(config *bootstrapv1.KubexmConfig) bool {
	hosts := c.hosts()
	i := slices.IndexFunc(hosts, func(h host) bool { return h.name == config.Name })
	if i < 0 || !hosts[i].etcd || !c.missed(hosts[i]) || c.member(hosts[i]).Address == "" {
		return true
	}
	if known := c.known(config.Name); known == nil || known.Phase != bootstrapv1.MemberRemoved {
		return false
	}
	digest := bootstrapv1.MembersDigest(c.Known)
	return slices.ContainsFunc(hosts, func(h host) bool {
		return h.etcd && h.stays && h.config != nil && h.config.Status.MembersDigest == digest
	})
}

// Shared is what all hosts share, with its defaults.
func (c *ControlPlane) Shared() spec.Cluster {
	shared := *c.Object.Spec.Cluster.DeepCopy()
	shared.Default()
	return shared
}

// Stacked reports whether control plane hosts have etcd members.
func (c *ControlPlane) Stacked() bool {
	shared := c.Shared()
	return shared.Etcd.IsStacked()
}

// HostProblem is what is wrong with a Machine's host; nil if it was as planned when it was last observed, or is on its way there.
func (c *ControlPlane) HostProblem(m *clusterv1.Machine) *decision.Blocker {
	config := c.ConfigOf(m)
	if config == nil {
		return decision.Block(hosthealth.ConfigNotFoundReason, "its KubexmConfig does not exist")
	}
	return ProblemOf(config)
}

// IsSilent reports whether nothing is known of a KubexmConfig's host at present: it does not answer, or not what it was asked for.
func IsSilent(config *bootstrapv1.KubexmConfig) bool {
	unreached, problem := hosthealth.Problem(config, bootstrapv1.HostReachableCondition), ProblemOf(config)
	return unreached != nil || problem != nil && problem.Reason == bootstrapv1.ObservationFailedReason
}

// ProblemOf is what is wrong with a KubexmConfig's host; see HostProblem. What becomes of its Node, the Machine says. The message begins
// with the reason: conditions that have one of their own show it.
func ProblemOf(config *bootstrapv1.KubexmConfig) *decision.Blocker {
	problem := hosthealth.Problem(config, bootstrapv1.HostReachableCondition, bootstrapv1.HostConvergedCondition)
	if problem == nil {
		return nil
	}
	return decision.Block(problem.Reason, "%s", hosthealth.WithReason(problem))
}

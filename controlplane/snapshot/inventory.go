// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Leaving are the KubexmConfigs of hosts of the inventory that are not among the wanted ones any more and may leave now, and why others
// stay. What is wanted may be a mistake: a name that no host has, or a selector that selects none. So hosts that serve leave for others
// that do: those of load balancers once one does, and etcd's one at a time, once a majority does and as long as the rest keeps quorum.
func (c *ControlPlane) Leaving(wanted []bootstrapv1.HostReference) (leave []*bootstrapv1.KubexmConfig, stay []*decision.Blocker) {
	for _, role := range []spec.Role{spec.RoleEtcd, spec.RoleLoadBalancer} {
		of := slices.DeleteFunc(c.hosts(), func(h host) bool { return h.config == nil || h.role != role })
		unwanted := slices.DeleteFunc(slices.Clone(of), func(h host) bool {
			return !h.stays || slices.Contains(wanted, h.config.Spec.HostRef)
		})
		// One that does not serve is the first to leave.
		slices.SortStableFunc(unwanted, func(a, b host) int {
			return cmp.Or(boolToInt(c.serves(a))-boolToInt(c.serves(b)), cmp.Compare(a.name, b.name))
		})
		for _, h := range unwanted {
			if why := c.staysFor(wanted, h, of); why != nil {
				stay = append(stay, why.Prefixed("the host %s is not wanted any more, and stays: ", h.config.Spec.HostRef.Name))
				continue
			}
			leave = append(leave, h.config)
			of[slices.IndexFunc(of, func(other host) bool { return other.name == h.name })].stays = false
		}
	}
	return leave, stay
}

// staysFor is why a host does not leave yet, of all that have its role; nil if it may.
func (c *ControlPlane) staysFor(wanted []bootstrapv1.HostReference, h host, of []host) *decision.Blocker {
	if unknown := c.UnknownMember(); unknown != nil && h.role == spec.RoleEtcd {
		return unknown
	}
	if c.phase(h) != bootstrapv1.MemberServing {
		return nil // nobody has counted on it yet
	}
	field, needed := "spec.cluster.loadBalancer", 1
	if balancers := c.Object.Spec.Cluster.LoadBalancer.OwnHosts(); h.role == spec.RoleLoadBalancer && balancers.IsZero() {
		return nil // that there are none is what is declared
	}
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(ref bootstrapv1.HostReference) bool { return ref.Role != h.role })
	if h.role == spec.RoleEtcd {
		field, needed = "spec.cluster.etcd.hosts", len(wanted)/2+1
	}
	serving := 0
	for _, other := range of {
		serving += boolToInt(slices.Contains(wanted, other.config.Spec.HostRef) && c.serves(other))
	}
	if serving < needed {
		return decision.Block(WaitingForHostsReason, "of the %d hosts that %s chooses, %d serve, and %d must before it leaves",
			len(wanted), field, serving, needed)
	}
	if h.role == spec.RoleEtcd {
		return c.keepsQuorum(h, of)
	}
	return nil
}

// keepsQuorum is why the others of etcd's hosts cannot do without one yet; nil if they can.
func (c *ControlPlane) keepsQuorum(leaves host, of []host) *decision.Blocker {
	members, serving := 0, 0
	for _, h := range of {
		switch {
		case !h.stays:
			return decision.Block(WaitingForHostsReason, "the host %s leaves first", h.config.Spec.HostRef.Name)
		case h.name == leaves.name || c.phase(h) != bootstrapv1.MemberServing:
			continue
		}
		members++
		serving += boolToInt(c.serves(h))
	}
	if serving < members/2+1 {
		return decision.Block(QuorumAtRiskReason, "without it, %d of %d members of etcd would be known to be healthy", serving, members)
	}
	return nil
}

// HasEtcd reports whether etcd on hosts of its own has begun, or one of them is to begin it, or whether that may be so for all that is
// known: a second one is not begun beside it. A host that leaves, or has left, without ever having served has begun nothing that counts:
// where it was the one that was to, another does. A move or a restore loses statuses, and KubexmConfigs can be lost without their hosts.
func (c *ControlPlane) HasEtcd() bool {
	if c.Begun() || c.Workload != nil && c.Workload.Initialized {
		return true
	}
	if slices.ContainsFunc(c.Known, func(m bootstrapv1.ClusterMember) bool {
		return m.Role == spec.RoleEtcd && m.Phase == bootstrapv1.MemberServing
	}) {
		return true
	}
	// A Machine joins only where the control plane has begun.
	joins := slices.ContainsFunc(c.Own(), func(m clusterv1.Machine) bool {
		config := c.ConfigOf(&m)
		return config != nil && config.Spec.BootstrapMode == spec.BootstrapJoin
	})
	return slices.ContainsFunc(c.Configs, func(config bootstrapv1.KubexmConfig) bool {
		return config.Spec.HostRef.Role == spec.RoleEtcd && c.Controls(&config) && config.DeletionTimestamp.IsZero() &&
			(joins || !c.awaitsEtcd(&config))
	})
}

// awaitsEtcd reports whether one of etcd's hosts is known for certain to wait for another one that begins.
func (c *ControlPlane) awaitsEtcd(config *bootstrapv1.KubexmConfig) bool {
	known := c.known(config.Name)
	return config.Spec.BootstrapMode == spec.BootstrapJoin && known != nil && known.Phase == bootstrapv1.MemberJoining &&
		config.Status.KubernetesVersion == "" && len(config.Status.Etcd.Members) == 0
}

// serves reports whether a host of the inventory was brought to what it must be, and is known to do its work.
func (c *ControlPlane) serves(h host) bool {
	if c.phase(h) != bootstrapv1.MemberServing || ProblemOf(h.config) != nil {
		return false
	}
	if !h.etcd {
		return true
	}
	status, _ := c.etcdMember(h)
	return status == metav1.ConditionTrue
}

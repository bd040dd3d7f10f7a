// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Shared is what all hosts of a Cluster share. It is computed once, for however many hosts.
type Shared struct {
	// Cluster has its defaults.
	Cluster spec.Cluster

	cluster *clusterv1.Cluster
	config  *bootstrapv1.KubexmClusterConfigSpec
}

// SharedOf is what a Cluster and its KubexmClusterConfig say.
func SharedOf(cluster *clusterv1.Cluster, config *bootstrapv1.KubexmClusterConfig) *Shared {
	s := &Shared{Cluster: config.Spec.Shared(cluster), cluster: cluster, config: &config.Spec}
	s.Cluster.Default()
	return s
}

// Host is a host in the cluster. The order of addresses is the infrastructure's, which need not know the cluster's families. A host
// that does not become a Node registers nowhere.
func (s *Shared) Host(host spec.Host, role spec.Role) spec.Host {
	host.Role, host.InternalAddresses = role, s.Cluster.Network.Usable(host.InternalAddresses)
	if !role.IsNode() {
		host.ProviderID = ""
	}
	return host
}

// Located is how many members with a role stay whose addresses are known.
func (s *Shared) Located(role spec.Role) int {
	n := 0
	for _, m := range s.config.Members {
		if m.Role == role && m.Stays() && m.Address != "" {
			n++
		}
	}
	return n
}

// addMembers says of which members the cluster consists, to hosts that have to do with it: a change of the list is a change of what the
// host must be. See bootstrapv1.MemberPhase.
func (s *Shared) addMembers(t *spec.Target) {
	etcd := spec.RoleEtcd
	if s.Cluster.Etcd.IsStacked() {
		etcd = spec.RoleControlPlane
	}
	concerned := s.concerns(t.Host.Role)
	for _, m := range s.config.Members {
		switch {
		case m.Address == "": // it is on its way in, and nobody can reach it yet
		case m.Stays() && slices.Contains(concerned, m.Role):
			t.Members = append(t.Members, m.Host())
		case m.Phase == bootstrapv1.MemberRemoved && m.Role == etcd && t.Host.Role == etcd:
			t.Leaving = append(t.Leaving, m.Host())
		}
	}
	byName := func(a, b spec.Member) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(t.Members, byName)
	slices.SortFunc(t.Leaving, byName)
}

// concerns are the roles whose hosts a host with this role has to know.
func (s *Shared) concerns(role spec.Role) []spec.Role {
	switch {
	case role == spec.RoleControlPlane && s.Cluster.Etcd.IsStacked():
		return []spec.Role{spec.RoleControlPlane}
	case role == spec.RoleControlPlane:
		return []spec.Role{spec.RoleControlPlane, spec.RoleEtcd}
	case role == spec.RoleLoadBalancer:
		return []spec.Role{spec.RoleControlPlane, spec.RoleLoadBalancer}
	case role == spec.RoleEtcd:
		return []spec.Role{spec.RoleEtcd}
	case s.Cluster.LoadBalancer.IsLocal():
		return []spec.Role{spec.RoleControlPlane}
	}
	return nil
}

// Missing is what a host waits for that must not be planned for with less than there is, nil if nothing: the virtual address, which the
// Cluster may have another idea of; its own place among the members; etcd's own hosts, all of which an API server must know; and an API
// server for anyone who balances load between them.
func (s *Shared) Missing(machine *clusterv1.Machine, config *bootstrapv1.KubexmConfig) *decision.Blocker {
	wanted := s.config.Cluster.ControlPlaneEndpoint.Address
	if is := s.Cluster.ControlPlaneEndpoint.Address; wanted != "" && is != wanted {
		return waits("the Cluster's spec.controlPlaneEndpoint is %s, and the KubexmControlPlane's "+
			"spec.cluster.controlPlaneEndpoint.address %s: give the infrastructure cluster the latter before it is created", is, wanted)
	}
	role := RoleOf(machine, config)
	if role != spec.RoleWorker {
		if m := s.config.MemberOf(config); m == nil || m.Role != role || m.Address == "" || !m.Stays() {
			return waits("the KubexmClusterConfig %s does not list the host as one of its members yet (spec.members, with the role %s and "+
				"an address)", s.cluster.Name, role)
		}
	}
	if slices.Contains(s.concerns(role), spec.RoleControlPlane) && s.Located(spec.RoleControlPlane) == 0 {
		return waits("it is not known yet where a host of the control plane is: a load balancer without servers would serve nobody")
	}
	if role != spec.RoleControlPlane || s.Cluster.Etcd.IsStacked() || s.Cluster.Etcd.IsExternal() {
		return nil
	}
	return s.etcdMissing()
}

// waits is why a host waits for something of its Cluster.
func waits(format string, args ...any) *decision.Blocker {
	return decision.Block(bootstrapv1.WaitingForClusterReason, format, args...)
}

// etcdMissing says which of etcd's own hosts is not known yet, nil if all are.
func (s *Shared) etcdMissing() *decision.Blocker {
	members := s.config.Members
	for _, name := range s.Cluster.Etcd.Hosts.Names {
		if !slices.ContainsFunc(members, func(m bootstrapv1.ClusterMember) bool { return m.Name == name && m.Role == spec.RoleEtcd }) {
			return waits("it is not known yet where etcd's host %s is: see its KubexmConfig", name)
		}
	}
	for _, m := range members {
		if m.Role == spec.RoleEtcd && m.Stays() && m.Address == "" {
			return waits("it is not known yet where etcd's host %s is: see its KubexmConfig", m.Name)
		}
	}
	if s.Located(spec.RoleEtcd) == 0 {
		return waits("it is not known yet where any of etcd's own hosts is")
	}
	return nil
}

// versionOf is the version of Kubernetes that a Machine's host must have: the Machine's own, or else the cluster's. A worker whose
// Machine has none keeps the version of the API servers until they have the cluster's: a kubelet must not be newer than one of them, and
// the host is to follow everything else meanwhile.
func (s *Shared) versionOf(machine *clusterv1.Machine, role spec.Role) string {
	if machine.Spec.Version != "" || role != spec.RoleWorker {
		return cmp.Or(machine.Spec.Version, s.config.Version)
	}
	oldest, err := version.ParseSemantic(s.config.APIServerVersion)
	if err != nil {
		return s.config.Version // there is none yet, or one that is not ours to judge
	}
	if declared, err := version.ParseSemantic(s.config.Version); err == nil && oldest.LessThan(declared) {
		return s.config.APIServerVersion
	}
	return s.config.Version
}

// ControlPlaneBehind is what a worker waits for whose version is newer than an API server's, which a kubelet's must not be; nil if
// it is not.
func (s *Shared) ControlPlaneBehind(machine *clusterv1.Machine, config *bootstrapv1.KubexmConfig) *decision.Blocker {
	if machine == nil || RoleOf(machine, config) != spec.RoleWorker {
		return nil
	}
	oldest, err := version.ParseSemantic(s.config.APIServerVersion)
	if err != nil {
		return nil // there is none yet, or one that is not ours to judge
	}
	wanted, err := version.ParseSemantic(machine.Spec.Version)
	if err != nil || !oldest.LessThan(wanted) {
		return nil
	}
	return waits("the control plane has %s still: no kubelet may be newer than an API server, and the Machine's spec.version is %s",
		s.config.APIServerVersion, machine.Spec.Version)
}

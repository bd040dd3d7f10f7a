// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
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

// Members are the hosts that the control plane, etcd and the load balancers consist of, by their names: those whose address
// is known and that are not about to go.
func (c *ControlPlane) Members() []spec.Member {
	var members []spec.Member
	add := func(config *bootstrapv1.KubexmConfig, role spec.Role) {
		if config.Status.Host.Name != "" {
			members = append(members, memberOf(config, role))
		}
	}
	for _, m := range c.Own() {
		if config := c.ConfigOf(&m); config != nil && m.DeletionTimestamp.IsZero() {
			add(config, spec.RoleControlPlane)
		}
	}
	for i := range c.Configs {
		config := &c.Configs[i]
		if config.Spec.HostRef.Name != "" && config.DeletionTimestamp.IsZero() {
			add(config, config.Spec.HostRef.Role)
		}
	}
	slices.SortFunc(members, byName)
	return members
}

func memberOf(config *bootstrapv1.KubexmConfig, role spec.Role) spec.Member {
	h := config.Status.Host
	return spec.Member{Name: h.Name, Role: role, Address: cmp.Or(h.InternalAddress, h.Address)}
}

func byName(a, b spec.Member) int { return cmp.Compare(a.Name, b.Name) }

// Server is the URL of the API for those outside of the cluster. Where each Node has a load balancer of its own, the endpoint is
// the first host's address: when that host has left, or does not answer, it is another's.
func (c *ControlPlane) Server() string {
	endpoint, shared := c.Cluster.Spec.ControlPlaneEndpoint, c.Shared()
	if e := shared.ControlPlaneEndpoint; e.IsLocal() && e.External == "" {
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
		if m.Role != spec.RoleControlPlane {
			continue
		}
		all = append(all, m.Address)
		i := slices.IndexFunc(c.Configs, func(config bootstrapv1.KubexmConfig) bool { return config.Status.Host.Name == m.Name })
		if i >= 0 && c.Configs[i].Status.KubernetesVersion != "" && !conditions.IsFalse(&c.Configs[i], bootstrapv1.HostReachableCondition) {
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
		if c.Configs[i].Spec.HostRef == ref {
			return &c.Configs[i]
		}
	}
	return nil
}

// etcdHost is a host with an etcd member, and whether it is to go now.
type etcdHost struct {
	config  *bootstrapv1.KubexmConfig
	staying bool
	// leaving is whether nothing but the member keeps it: the Node of a Machine is drained first, and then its API server ends, which
	// could answer nobody without its etcd.
	leaving bool
}

// etcdHosts are all that have members, be they Machines' or the inventory's.
func (c *ControlPlane) etcdHosts() []etcdHost {
	if !c.Object.DeletionTimestamp.IsZero() {
		return nil // all of it goes, and no member counts on others
	}
	var all []etcdHost
	if c.Stacked() {
		for _, m := range c.Own() {
			if config := c.ConfigOf(&m); config != nil && config.Status.Host.Name != "" {
				all = append(all, etcdHost{config, m.DeletionTimestamp.IsZero(), awaitsHooks(&m) && !serves(config)})
			}
		}
		return all
	}
	for i := range c.Configs {
		if config := &c.Configs[i]; config.Spec.HostRef.Role == spec.RoleEtcd && config.Status.Host.Name != "" {
			stays := config.DeletionTimestamp.IsZero()
			all = append(all, etcdHost{config, stays, !stays})
		}
	}
	return all
}

// serves reports whether a host may have an API server that answers. One that was never brought to a version has none to miss.
func serves(config *bootstrapv1.KubexmConfig) bool {
	return config.Status.KubernetesVersion != "" && config.Status.WithdrawnTime.IsZero()
}

// Leaving are the hosts whose etcd members are to be removed, while others stay.
func (c *ControlPlane) Leaving() []spec.Member {
	hosts := c.etcdHosts()
	if !slices.ContainsFunc(hosts, func(h etcdHost) bool { return h.staying }) {
		return nil
	}
	role := spec.RoleEtcd
	if c.Stacked() {
		role = spec.RoleControlPlane
	}
	var leaving []spec.Member
	for _, h := range hosts {
		if h.leaving {
			leaving = append(leaving, memberOf(h.config, role))
		}
	}
	slices.SortFunc(leaving, byName)
	return leaving
}

// MayTerminate reports whether a Machine that is being deleted may take its host out of the cluster.
func (c *ControlPlane) MayTerminate(m *clusterv1.Machine) bool {
	config := c.ConfigOf(m)
	return config == nil || c.MayLeave(config)
}

// MayLeave reports whether a host may go: its etcd member is gone, or it has none, or nobody stays who would miss it.
func (c *ControlPlane) MayLeave(config *bootstrapv1.KubexmConfig) bool {
	name, hosts := config.Status.Host.Name, c.etcdHosts()
	has := slices.ContainsFunc(hosts, func(h etcdHost) bool { return h.config.Name == config.Name })
	stays := slices.ContainsFunc(hosts, func(h etcdHost) bool { return h.staying })
	return !has || !stays || slices.ContainsFunc(hosts, func(h etcdHost) bool { return h.staying && slices.Contains(h.config.Status.Left, name) })
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

// HostProblem is what is wrong with a Machine's host, "" if it was as planned when it was last looked at, or is on its way
// there.
func (c *ControlPlane) HostProblem(m *clusterv1.Machine) string {
	config := c.ConfigOf(m)
	if config == nil {
		return "its KubexmConfig does not exist"
	}
	return ProblemOf(config)
}

// ProblemOf is what is wrong with a KubexmConfig's host; see HostProblem.
func ProblemOf(config *bootstrapv1.KubexmConfig) string {
	for _, kind := range []string{bootstrapv1.HostReachableCondition, bootstrapv1.HostConvergedCondition} {
		if now := conditions.Get(config, kind); now != nil && now.Status == metav1.ConditionFalse && now.Reason != bootstrapv1.ConvergingReason {
			return fmt.Sprintf("%s: %s", now.Reason, now.Message)
		}
	}
	return ""
}

// awaitsHooks reports whether a Machine's deletion waits for nothing but pre-terminate hooks: its Node is drained by then.
func awaitsHooks(m *clusterv1.Machine) bool {
	return !m.DeletionTimestamp.IsZero() &&
		conditions.GetReason(m, clusterv1.MachineDeletingCondition) == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// EtcdMemberHealthy is the condition of a control plane Machine, named as Cluster API's own control plane names it: whether etcd lists
// the member on its host, with a vote and without an alarm. It is what etcd itself said when a host was last observed.
const EtcdMemberHealthy = "EtcdMemberHealthy"

// view is the newest that a member of etcd has said of all of them, nil if none has said anything. Of two that tell of the same change,
// the newer knows it: etcd answers with what holds at that time, wherever it is asked.
func (c *ControlPlane) view() *bootstrapv1.EtcdStatus {
	var newest *bootstrapv1.EtcdStatus
	for _, h := range c.hosts() {
		if h.config == nil || !h.etcd {
			continue
		}
		said := &h.config.Status.Etcd
		if len(said.Members) > 0 && (newest == nil || newest.ObservedTime.Before(&said.ObservedTime)) {
			newest = said
		}
	}
	return newest
}

// EtcdMember is whether the etcd member on a Machine's host is well, and what is wrong with it, or why that is not known.
func (c *ControlPlane) EtcdMember(m *clusterv1.Machine) (metav1.ConditionStatus, string) {
	switch {
	case !m.DeletionTimestamp.IsZero():
		return metav1.ConditionUnknown, "the Machine is being deleted"
	case !m.Status.NodeRef.IsDefined():
		return metav1.ConditionUnknown, "the Machine has no Node yet"
	}
	for _, h := range c.hosts() {
		if h.etcd && h.name == m.Spec.Bootstrap.ConfigRef.Name {
			return c.etcdMember(h)
		}
	}
	return metav1.ConditionUnknown, "its host has no member"
}

func (c *ControlPlane) etcdMember(h host) (metav1.ConditionStatus, string) {
	address, view := addressOf(c.member(h).Address), c.view()
	switch {
	case h.config == nil || h.config.Status.Etcd.ObservedTime.IsZero():
		return metav1.ConditionUnknown, "etcd on its host has not been asked yet"
	case conditions.IsFalse(h.config, bootstrapv1.HostReachableCondition):
		return metav1.ConditionUnknown, "its host was not reached: " + conditions.GetMessage(h.config, bootstrapv1.HostReachableCondition)
	case h.config.Status.Etcd.Message != "":
		return metav1.ConditionFalse, h.config.Status.Etcd.Message
	case address == "" || view == nil:
		return metav1.ConditionUnknown, "it is not known which of etcd's members is on its host"
	}
	i := slices.IndexFunc(view.Members, func(m bootstrapv1.EtcdMemberStatus) bool { return quorum.Address(m.PeerURL) == address })
	if i < 0 {
		return metav1.ConditionFalse, fmt.Sprintf("etcd lists no member on its host (%s)", address)
	}
	member := view.Members[i]
	var alarms []string
	for _, a := range view.Alarms {
		if a.MemberID == member.ID {
			alarms = append(alarms, alarm(a.Type))
		}
	}
	switch {
	case len(alarms) > 0:
		return metav1.ConditionFalse, fmt.Sprintf("the member %s has raised the alarm %s", label(member), strings.Join(alarms, " and "))
	case member.Type == bootstrapv1.EtcdLearner:
		return metav1.ConditionFalse, fmt.Sprintf("the member %s is a learner, which has no vote yet", label(member))
	}
	return metav1.ConditionTrue, ""
}

// alarm is one with what it means.
func alarm(kind string) string {
	switch kind {
	case "NOSPACE":
		return kind + " (its database has reached its quota, and etcd refuses writes)"
	case "CORRUPT":
		return kind + " (its data is not that of the others: delete its Machine, or reset its host, so that it joins anew)"
	}
	return kind
}

// label is a member for people.
func label(m bootstrapv1.EtcdMemberStatus) string {
	return fmt.Sprintf("%s (ID %s, %s)", cmp.Or(m.Name, "without a name"), m.ID, cmp.Or(m.PeerURL, "without a URL"))
}

// addressOf is an address as quorum.Address writes it.
func addressOf(address string) string {
	if address == "" {
		return ""
	}
	return quorum.Address("https://" + net.JoinHostPort(address, "2380"))
}

// strangers are the members of etcd that no host has: none of the control plane's, on its way in or out or not, now or as the
// KubexmClusterConfig lists them. Nothing can be said where it is not known where hosts are.
func (c *ControlPlane) strangers() []bootstrapv1.EtcdMemberStatus {
	view := c.view()
	if view == nil || c.Unlocated() != "" {
		return nil
	}
	role := spec.RoleEtcd
	if c.Stacked() {
		role = spec.RoleControlPlane
	}
	known := map[string]bool{}
	for _, m := range slices.Concat(c.Members(), c.Known) {
		if m.Role == role && m.Address != "" {
			known[addressOf(m.Address)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(view.Members), func(m bootstrapv1.EtcdMemberStatus) bool {
		return known[quorum.Address(m.PeerURL)]
	})
}

// EtcdProblems are what is wrong with etcd beside its members' processes, in the words of who has to do something about it.
func (c *ControlPlane) EtcdProblems() []string {
	view := c.view()
	var problems []string
	for _, h := range c.hosts() {
		if !h.etcd || !h.stays || h.role == spec.RoleControlPlane && !h.hasNode {
			continue
		}
		if status, why := c.etcdMember(h); status == metav1.ConditionFalse {
			problems = append(problems, cmp.Or(h.config.Spec.HostRef.Name, h.name)+": "+why)
		}
	}
	for _, m := range c.strangers() {
		if c.isGone(m) {
			problems = append(problems, fmt.Sprintf("the member %s is declared to be gone, and is not removed yet", label(m)))
			continue
		}
		problems = append(problems, fmt.Sprintf("etcd lists the member %s, which no host of the cluster has. It counts for quorum, and until it is "+
			"gone no Machine is made, replaced or deleted. If its host is gone for good, say so: add %q to spec.cluster.etcd.goneMembers, "+
			"and it is removed", label(m), m.ID))
	}
	if view != nil {
		for _, a := range view.Alarms {
			if !slices.ContainsFunc(view.Members, func(m bootstrapv1.EtcdMemberStatus) bool { return m.ID == a.MemberID }) {
				problems = append(problems, fmt.Sprintf("the member with the ID %s, which etcd does not list any more, has raised the alarm %s: "+
					"end it by etcdctl alarm disarm once its cause is gone", a.MemberID, alarm(a.Type)))
			}
		}
	}
	return problems
}

// isGone reports whether a member is declared to be gone.
func (c *ControlPlane) isGone(m bootstrapv1.EtcdMemberStatus) bool {
	gone := c.Object.Spec.Cluster.Etcd.GoneMembers
	return slices.Contains(gone, m.ID) || m.Name != "" && slices.Contains(gone, m.Name)
}

// UnknownMember is why no member of etcd may come or go; nil if none is unknown: who has died with a host that nobody names any more
// counts for quorum, and each further one that fails is one too many.
func (c *ControlPlane) UnknownMember() *decision.Blocker {
	strangers := c.strangers()
	if len(strangers) == 0 {
		return nil
	}
	return decision.Block(UnknownEtcdMemberReason, "etcd lists the member %s, which no host of the cluster has (see EtcdClusterHealthy)",
		label(strangers[0]))
}

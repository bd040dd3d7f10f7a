// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Decision is the next step towards the right Machines: at most one is made, deleted or changed, and while anything of the
// control plane is not well, none. The zero value is nothing to do.
type Decision struct {
	// Create says to make a Machine, and BootstrapMode what its host does.
	Create        bool
	BootstrapMode spec.BootstrapMode
	// Delete is the Machine to delete.
	Delete *clusterv1.Machine
	// Follow is the Machine whose host is to follow the declared version in place.
	Follow *clusterv1.Machine
	// Why is the reason for what is to be done, in one line.
	Why string
	// Blocked is why what should be done is not done now.
	Blocked *decision.Blocker
	// Ask are Machines on whose hosts etcd is to be asked how it is: what it says is waited for.
	Ask []clusterv1.Machine
	// Wait is what it waits for, if that is all that stands in the way.
	Wait *Wait
	// Preflight is what must be repaired before another version is rolled out; nil if nothing must.
	Preflight *decision.Blocker
	// Save is the Machine on whose host a snapshot of etcd is to be saved first, and EtcdSaved says that there is one.
	Save      *clusterv1.Machine
	EtcdSaved bool
}

// Decide is the next step. A control plane that has begun has its data on its hosts: when the last of them is gone,
// another one would be another cluster under the same name.
//
// Machines that are missing come first, and those that are too many; then those are replaced that must be; then hosts follow.
func (c *ControlPlane) Decide() Decision { return c.awaitEtcd(c.save(c.preflight(c.decide()))) }

func (c *ControlPlane) decide() Decision {
	own, want := c.Own(), c.Replicas()
	replace, follow := c.outdated()
	most := want
	if len(replace) > 0 {
		most += c.maxSurge()
	}
	switch {
	case c.Lost():
		return Decision{}
	case len(own) == 0:
		return Decision{Create: true, BootstrapMode: spec.BootstrapInit, Why: "the first of them"}
	case !c.Begun() && len(own) == 1 && own[0].Spec.Version != c.Object.Spec.Version && own[0].DeletionTimestamp.IsZero():
		return Decision{Follow: &own[0], Why: "it has not begun the control plane yet"}
	case len(own) < want && c.InProgress() != nil:
		return c.succeed(c.InProgress().Machine)
	case len(own) < want:
		return c.add(fmt.Sprintf("there are %d of %d Machines", len(own), want), forAny...)
	case len(own) > most:
		return c.drop(c.nextToLeave(own), fmt.Sprintf("there are %d Machines, and %d are wanted", len(own), want), forAny...)
	case len(replace) > 0:
		return c.admit(c.replace(replace, len(own) < most), replace)
	case len(follow) > 0:
		return c.canary(c.follow(follow), follow)
	}
	return Decision{}
}

// add makes another Machine. Hosts that wait for one of these reasons do not keep it: members of etcd come, go and are restarted by
// turns that the hosts themselves take, and only while the others answer.
func (c *ControlPlane) add(why string, waits ...string) Decision {
	if blocked := c.Unsettled(nil, waits...); blocked != nil {
		return Decision{Blocked: blocked}
	}
	return Decision{Create: true, BootstrapMode: spec.BootstrapJoin, Why: why}
}

// succeed makes the successor of an unhealthy Machine. Others may be unhealthy, too, as long as the cluster lives on if the
// successor is one of them: they are replaced after it.
func (c *ControlPlane) succeed(machine string) Decision {
	blocked := c.blocked()
	if blocked == nil {
		blocked = c.wouldLoseQuorum(c.Own(), 1).Prefixed("if another Machine fails as it joins, ")
	}
	if blocked != nil {
		return Decision{Blocked: blocked}
	}
	return Decision{Create: true, BootstrapMode: spec.BootstrapJoin, Why: fmt.Sprintf("in the place of the unhealthy Machine %s", machine)}
}

// drop deletes a Machine. That it is not well itself does not keep it, nor do hosts that wait for one of these reasons; see add.
func (c *ControlPlane) drop(m *clusterv1.Machine, why string, waits ...string) Decision {
	if blocked := c.Unsettled(m, waits...); blocked != nil {
		return Decision{Blocked: blocked}
	}
	return Decision{Delete: m, Why: why}
}

// replace makes a successor where there is room for one, and deletes one of the outdated Machines where there is not.
func (c *ControlPlane) replace(outdated []clusterv1.Machine, room bool) Decision {
	if blocked := cmp.Or(c.irreplaceable(), c.unready()); blocked != nil {
		return Decision{Blocked: blocked}
	}
	if room {
		return c.add(c.why(outdated))
	}
	leaves := c.nextToLeave(outdated)
	return c.drop(leaves, c.why([]clusterv1.Machine{*leaves}))
}

// follow has one of the outdated Machines' hosts follow: one that is not well, or the oldest. What a host cannot get right is
// repaired by another version, perhaps, and the others are no worse for it. Those that wait for their pool meanwhile wait for that host,
// and must not keep it. Where none fails, their turn comes by itself.
func (c *ControlPlane) follow(outdated []clusterv1.Machine) Decision {
	if blocked := cmp.Or(c.unready(), c.blocked()); blocked != nil {
		return Decision{Blocked: blocked}
	}
	next, waits := &outdated[0], []string(nil)
	behind := func(m clusterv1.Machine) bool { return c.unsettled(&m) != nil }
	fails := func(m clusterv1.Machine) bool { return behind(m) && cmp.Or(c.unhealthy(&m), c.HostProblem(&m)) != nil }
	if i := slices.IndexFunc(outdated, fails); i >= 0 {
		next, waits = &outdated[i], forPool
	} else if i := slices.IndexFunc(outdated, behind); i >= 0 {
		next = &outdated[i]
	}
	if blocked := c.Unsettled(next, waits...); blocked != nil {
		return Decision{Blocked: blocked}
	}
	return Decision{Follow: next, Why: c.why([]clusterv1.Machine{*next})}
}

// nextToLeave is the Machine of these that is deleted first: one that the user has marked, then one that is not well, then one
// that is not up to date, then one of the failure domain that has most, the oldest first. Of those alike, the one whose host has the
// snapshot of etcd from before the rollout is the last.
func (c *ControlPlane) nextToLeave(of []clusterv1.Machine) *clusterv1.Machine {
	count := map[string]int{}
	for _, m := range c.Own() {
		count[domainOf(&m)]++
	}
	rank := func(m clusterv1.Machine) int {
		_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
		switch {
		case marked:
			return 0
		case !m.Status.NodeRef.IsDefined() || c.isUnhealthy(&m):
			return 1
		case len(c.Changes(&m)) > 0:
			return 2
		}
		return 3
	}
	of = slices.Clone(of)
	slices.SortStableFunc(of, func(a, b clusterv1.Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), last(c.hasSaved(&a), c.hasSaved(&b)),
			cmp.Compare(count[domainOf(&b)], count[domainOf(&a)]))
	})
	return &of[0]
}

// last orders what is so behind what is not.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (c *ControlPlane) isUnhealthy(m *clusterv1.Machine) bool {
	if status, _ := c.EtcdMember(m); status == metav1.ConditionFalse {
		return true
	}
	return c.Workload != nil && slices.ContainsFunc(c.Workload.Components[m.Name], func(part Component) bool { return part.Problem != "" })
}

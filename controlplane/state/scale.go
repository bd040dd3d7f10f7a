// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Scaling is the next step towards the right number of Machines: at most one is made or deleted, and while anything of the
// control plane is not well, none. The zero value is nothing to do.
type Scaling struct {
	// Create says to make a Machine, and Order what its host does.
	Create bool
	Order  spec.Order
	// Delete is the Machine to delete.
	Delete *clusterv1.Machine
	// Blocked is why what should be done is not done now.
	Blocked string
}

// Scale decides on it. A control plane that was initialized has its data on its hosts: when the last of them is gone, another
// one would be another cluster under the same name.
func (c *ControlPlane) Scale() Scaling {
	own := c.Own()
	switch want := c.Replicas(); {
	case c.Lost(), len(own) == want:
		return Scaling{}
	case len(own) == 0:
		return Scaling{Create: true, Order: spec.OrderFirst}
	case len(own) < want:
		if why := c.Unsettled(nil); why != "" {
			return Scaling{Blocked: why}
		}
		return Scaling{Create: true, Order: spec.OrderLater}
	}
	leaves := c.nextToLeave()
	if why := c.Unsettled(leaves); why != "" {
		return Scaling{Blocked: why}
	}
	return Scaling{Delete: leaves}
}

// Unsettled is why the control plane should not be changed now, "" if it may be: one act at a time, and only while all of it
// works. What is wrong with except alone, a Machine that is about to go, does not count.
func (c *ControlPlane) Unsettled(except *clusterv1.Machine) string {
	if !c.Initialized() {
		return "the first host has not begun the control plane yet"
	}
	for _, m := range c.Own() {
		if !m.DeletionTimestamp.IsZero() {
			return fmt.Sprintf("the Machine %s is being deleted", m.Name)
		}
	}
	switch w := c.Workload; {
	case w == nil:
		return "the cluster has not been looked at yet"
	case w.Err != nil:
		return fmt.Sprintf("the cluster cannot be looked at: %v", w.Err)
	}
	for _, m := range c.Own() {
		if except != nil && m.Name == except.Name {
			continue
		}
		if !m.Status.NodeRef.IsDefined() {
			return fmt.Sprintf("the Machine %s has no Node yet", m.Name)
		}
		if config := c.ConfigOf(&m); config != nil && !conditions.IsTrue(config, bootstrapv1.HostConvergedCondition) {
			return fmt.Sprintf("the host of the Machine %s is not as planned yet: %s", m.Name,
				conditions.GetMessage(config, bootstrapv1.HostConvergedCondition))
		}
		if config := c.ConfigOf(&m); config != nil && !config.Status.LastRun.StartTime.IsZero() && config.Status.LastRun.EndTime.IsZero() {
			return fmt.Sprintf("the host of the Machine %s follows a change at present", m.Name)
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
	}
	return ""
}

// nextToLeave is the Machine that is deleted when there is one too many: one that the user has marked, then one that is not
// well, then one of the failure domain that has most, the oldest first.
func (c *ControlPlane) nextToLeave() *clusterv1.Machine {
	own := c.Own()
	count := map[string]int{}
	for _, m := range own {
		count[m.Spec.FailureDomain]++
	}
	rank := func(m clusterv1.Machine) int {
		if _, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]; marked {
			return 0
		}
		if !m.Status.NodeRef.IsDefined() || c.ailing(&m) {
			return 1
		}
		return 2
	}
	slices.SortStableFunc(own, func(a, b clusterv1.Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(count[b.Spec.FailureDomain], count[a.Spec.FailureDomain]))
	})
	return &own[0]
}

func (c *ControlPlane) ailing(m *clusterv1.Machine) bool {
	return c.Workload != nil && slices.ContainsFunc(c.Workload.Components[m.Name], func(part Component) bool { return part.Problem != "" })
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/remediation"
)

// nextStage is what is tried with the host of an unhealthy Machine before the Machine is replaced. Its attempt is nil if all was tried, or
// if nothing can be.
func (c *ControlPlane) nextStage(m *clusterv1.Machine) remediation.Action {
	if !c.isRemediable(m) {
		return remediation.Action{}
	}
	limits := &c.Object.Spec.Remediation
	converge := remediation.Attempt{
		Stage: remediation.Converge, Asked: c.askedForThis(m, bootstrapv1.ConvergeAnnotation), Config: c.ConfigOf(m),
		Timeout: seconds(limits.ConvergeTimeoutSeconds, bootstrapv1.ConvergeTimeout), Field: "spec.remediation.convergeTimeoutSeconds",
	}
	reboot := remediation.Attempt{
		Stage: remediation.Reboot, Asked: c.askedForThis(m, bootstrapv1.RebootAnnotation), Config: c.ConfigOf(m),
		Timeout: limits.RebootTimeout(), Field: "spec.remediation.rebootTimeoutSeconds",
	}
	if !hosthealth.CanReboot(c.ConfigOf(m)) || !c.canSpare(m) {
		reboot.Blocker = decision.Block(HostUnhealthyReason, "its host does not answer, or the cluster cannot do without it while it reboots")
	}
	return remediation.Next(c.Now, converge, reboot)
}

// askedForThis is when the host was asked for what an annotation is for because of what is wrong with the Machine now; the zero time if it
// was not. A problem that comes back soon is the same.
func (c *ControlPlane) askedForThis(m *clusterv1.Machine, annotation string) time.Time {
	asked := c.ConfigOf(m).Asked(annotation)
	if !c.isForThis(m, asked) {
		return time.Time{}
	}
	return asked
}

// canSpare reports whether the cluster can do without a Machine's host while that reboots: no Machine is on its way out, others are well,
// and where they have etcd's members, a majority of all. Its own member is taken for one that works: nothing that is seen from here proves
// that it does not.
func (c *ControlPlane) canSpare(m *clusterv1.Machine) bool {
	if !c.Initialized() || c.unseen() != nil {
		return false
	}
	own, well := c.Own(), 0
	for i := range own {
		if !own[i].DeletionTimestamp.IsZero() {
			return false // its member goes meanwhile, though it is well still
		}
		if own[i].Name != m.Name && c.unhealthy(&own[i]) == nil {
			well++
		}
	}
	if !c.Stacked() {
		return well > 0
	}
	return well >= len(own)/2+1
}

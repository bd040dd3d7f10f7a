// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// reboot says whether the host of an unhealthy Machine is to be rebooted, or why the Machine is not replaced because it was. Neither
// is so if a reboot did not help, cannot, or must not be: then it is replaced.
func (c *ControlPlane) reboot(m *clusterv1.Machine) (ask bool, why string) {
	timeout := c.Object.Spec.Remediation.RebootTimeout()
	if timeout == 0 || !c.mendable(m) {
		return false, ""
	}
	asked := c.ConfigOf(m).Asked(bootstrapv1.RebootAnnotation)
	if !c.isForThis(m, asked) {
		return c.ConfigOf(m).Answers() && c.spares(m), ""
	}
	if c.Now.Sub(asked) >= timeout {
		return false, ""
	}
	return false, fmt.Sprintf("its host reboots, and has %s for that (spec.remediation.rebootTimeoutSeconds)", timeout)
}

// spares reports whether the cluster can do without a Machine's host while that reboots: others are well, and where they have etcd's
// members, a majority of all. Its own member is taken for one that works: nothing that is seen from here proves that it does not.
func (c *ControlPlane) spares(m *clusterv1.Machine) bool {
	if !c.Initialized() || c.unseen() != "" {
		return false
	}
	own, well := c.Own(), 0
	for i := range own {
		if own[i].Name != m.Name && c.unwell(&own[i]) == "" {
			well++
		}
	}
	if !c.Stacked() {
		return well > 0
	}
	return well >= len(own)/2+1
}

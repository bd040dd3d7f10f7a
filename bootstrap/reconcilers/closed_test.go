// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"slices"
	"testing"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// TestClosedHostKeepsItsAddresses: nobody enrolls it again where its status was lost. At what its infrastructure says, which the cluster's
// hosts are not, it could be nothing.
func TestClosedHostKeepsItsAddresses(t *testing.T) {
	c := newClosable(t)
	c.shared.Spec.Cluster.Network.HostCIDRs = []string{"172.16.0.0/24"}
	c.config.Status.Host.Address, c.config.Status.Host.ObservedAddresses = "10.1.0.2", []string{"127.0.0.1", "172.16.0.2"}
	s := c.begin()
	target, err := targetOf(s)
	if err != nil {
		t.Fatal(err)
	}
	s.planned = &job{target: target}
	j, err := c.r.closingOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	j.record.state, j.record.at = accessClosing, "10.1.0.2"
	for _, record := range []accessRecord{j.record, {state: accessClosed}} {
		if err := c.r.keepAccess(t.Context(), c.config, record); err != nil {
			t.Fatal(err)
		}
	}
	for _, lost := range []string{"nothing", "its status", "its Secret", "its status"} {
		switch lost {
		case "its status":
			c.config.Status = bootstrapv1.KubexmConfigStatus{}
		case "its Secret":
			if err := c.Delete(t.Context(), c.secret("w1-host-key")); err != nil {
				t.Fatal(err)
			}
			c.config.Status.Host.HostKey = "ecdsa-sha2-nistp521 AAAA"
		}
		c.rest()
		if status := c.config.Status.Host; status.Address != "10.1.0.2" || status.InternalAddress != "172.16.0.2" ||
			!slices.Equal(status.ObservedAddresses, []string{"127.0.0.1", "172.16.0.2"}) {
			t.Errorf("%s was lost: %+v", lost, status)
		}
		if reason := conditions.GetReason(c.config, bootstrapv1.HostConvergedCondition); reason == bootstrapv1.InvalidReason {
			t.Errorf("%s was lost: %s", lost, conditions.GetMessage(c.config, bootstrapv1.HostConvergedCondition))
		}
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package remediation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/fleet"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestFailureDomains: a control plane of three is spread over the failure domains of its hosts, of which one has two, and a Machine that is
// deleted comes back in the domain that it leaves without one: on its host, when that is reset, while another domain's is free all along.
func TestFailureDomains(t *testing.T) {
	c := cluster{fleet.Start(t, fleet.Options{
		Pool: "md", Subnet: lab.Subnet(t, "REMEDIATION_SUBNET"), Bundles: []string{lab.Bundle(t, "KUBEXM_BUNDLE", "bundle")},
		ControlPlanes: 3, Spare: 1, Domains: []string{"a", "a", "b", "c"}, DriftCheckInterval: rarely,
		ControlPlane: controlplanev1.KubexmControlPlaneSpec{Cluster: binary()},
	})}
	before := c.wantSpread("a", "b", "c")

	gone := c.machineOn(c.Pool.Hosts[2])
	if err := c.API.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	c.Await(repairing, func(context.Context) error {
		for _, m := range c.Machines() {
			if m.UID == gone.UID {
				return fmt.Errorf("the Machine %s is there still", m.Name)
			}
		}
		return c.Unhealthy()
	})
	after := c.wantSpread("a", "b", "c")
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("the domains' hosts are others (-before +after):\n%s", d)
	}
}

// wantSpread wants one Machine in each of these failure domains, on a host of that domain, and returns the hosts by their domains.
func (c cluster) wantSpread(domains ...string) map[string]string {
	c.T.Helper()
	of, got := map[string]string{}, map[string]string{}
	for i, h := range c.Pool.Hosts {
		of[h.Name] = c.Options.Domains[i]
	}
	all := c.Machines()
	for i := range all {
		m, infra := &all[i], &infrav1.KubexmMachine{}
		c.Get(m.Spec.InfrastructureRef.Name, infra)
		host, wanted := infra.Status.HostRef.Name, m.Spec.FailureDomain
		if of[host] != wanted || infra.Status.FailureDomain != wanted || m.Status.FailureDomain != wanted {
			c.T.Errorf("the Machine %s is to be in %q, is on %s of %q, and says %q", m.Name, wanted, host, of[host], m.Status.FailureDomain)
		}
		got[wanted] = host
	}
	if d := cmp.Diff(domains, slices.Sorted(maps.Keys(got))); d != "" || len(all) != len(domains) {
		c.T.Fatalf("%d Machines are in other domains than they are to be (-want +got):\n%s", len(all), d)
	}
	return got
}

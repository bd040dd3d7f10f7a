// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"slices"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// TestServingNames: the cluster's authority vouches for what the Node has, and for no address that a worker has found to be its own and
// that is the API's.
func TestServingNames(t *testing.T) {
	c := &spec.Cluster{Network: spec.Network{ServiceCIDRs: []string{"10.96.0.0/12", "fd00:96::/108"}}}
	c.ControlPlaneEndpoint.Address = "2001:db8:0::100"
	for name, tc := range map[string]struct {
		second       string
		declared     []string
		controlPlane bool
		want         []string
	}{
		"one family":               {"", []string{"172.16.0.13", "203.0.113.13"}, false, []string{"w1", "172.16.0.13"}},
		"two":                      {"2001:db8::13", []string{"172.16.0.13"}, false, []string{"w1", "172.16.0.13", "2001:db8::13"}},
		"the endpoint's was found": {"2001:db8::100", []string{"172.16.0.13"}, false, []string{"w1", "172.16.0.13"}},
		"a Service's was found":    {"fd00:96::1", []string{"172.16.0.13"}, false, []string{"w1", "172.16.0.13"}},
		"the endpoint's was declared": {
			"2001:db8::100", []string{"172.16.0.13", "2001:db8::100"}, false, []string{"w1", "172.16.0.13", "2001:db8::100"},
		},
		"the endpoint's on the control plane": {"2001:db8::100", []string{"172.16.0.13"}, true, []string{"w1", "172.16.0.13", "2001:db8::100"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := kubelet.Node{
				Name: "w1", Address: "172.16.0.13", SecondAddress: tc.second, Addresses: tc.declared, ControlPlane: tc.controlPlane,
			}
			if got := n.ServingNames(c); !slices.Equal(got, tc.want) {
				t.Errorf("it is for %q, want %q", got, tc.want)
			}
		})
	}
}

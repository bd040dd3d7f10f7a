// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// externalLoadBalancer makes the pool's last host a load balancer that is none of the cluster's own, in front of all others.
func (c *cluster) externalLoadBalancer(t *testing.T) *hosts.Host {
	t.Helper()
	last := len(c.lab.Hosts) - 1
	h := c.lab.Hosts[last]
	lab.Balance(t, h, c.lab.Hosts[:last]...)
	return h
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planner plans and runs a cluster's pipelines from this process alone, without a management plane: for plans that
// are shown, written to a file and applied from it, and to look whether a cluster is up to date.
package planner

import (
	"cmp"
	"net"
	"strconv"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// Namespace is that of a cluster's objects in the embedded plane. It is a part of provider IDs, and so of what a host must
// be.
const Namespace = "default"

// Targets is what the reconcilers make of the config's objects.
func Targets(c *config.Cluster) ([]spec.Target, error) {
	return objects.Targets(objects.Of(c, objects.Inputs{Namespace: Namespace, Endpoint: Endpoint(c)}))
}

// EndpointAddress is the IP address at which the API server is reached: the declared one (a virtual address, or a load balancer's),
// or the first of IPv4 that the first control plane host has: over SSH it may be reached by IPv6. It is "" where DNS servers say it.
func EndpointAddress(c *config.Cluster) string {
	e := &c.Spec.ControlPlaneEndpoint
	if e.Address != "" || e.DomainResolution == spec.DomainExternalDNS {
		return e.Address
	}
	for i := range c.Hosts {
		h := c.Hosts[i].Spec()
		for _, address := range append([]string{h.Address}, h.InternalAddresses...) {
			if h.Role == spec.RoleControlPlane && spec.FamilyOf(address) == spec.IPv4 {
				return address
			}
		}
	}
	return ""
}

// Endpoint is where the API server is reached from this machine: EndpointAddress or, where DNS servers say it, the domain. A
// domain that is in the hosts' own /etc/hosts alone need not be known here.
func Endpoint(c *config.Cluster) string {
	return cmp.Or(EndpointAddress(c), c.Spec.ControlPlaneEndpoint.Domain)
}

// Server is the URL of the API server.
func Server(c *config.Cluster) string {
	return "https://" + net.JoinHostPort(Endpoint(c), strconv.Itoa(int(c.Spec.ControlPlaneEndpoint.Port)))
}

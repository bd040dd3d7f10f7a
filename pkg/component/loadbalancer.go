// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// LoadBalancer is the slot of what carries requests to the API servers. A cluster has two: one is external, on hosts of its own, the other
// internal, on the cluster's Nodes. Either may be without a proxy, without a virtual address, or without both.
type LoadBalancer struct {
	// Proxy spreads connections over the API servers: on each host of the external load balancer, and of the internal one on each worker.
	Proxy Proxy
	// VirtualAddress holds the endpoint's address: on one of the hosts of the external load balancer, and of the internal one on one of
	// the control plane's.
	VirtualAddress VirtualAddress
}

// Needs are what the internal load balancer takes from the bundle for a host.
func (l LoadBalancer) Needs(in Inputs) []Needs {
	var needs []Needs
	switch {
	case in.IsControlPlane() && l.VirtualAddress != nil:
		needs = append(needs, l.VirtualAddress.Needs(in))
	case in.IsNode() && !in.IsControlPlane() && l.Proxy != nil:
		needs = append(needs, l.Proxy.Needs(in))
	}
	return needs
}

// Proxy spreads connections over the API servers.
type Proxy interface {
	// Needs are what its pod takes from the bundle.
	Needs(in Inputs) Needs
	// Serve runs it as a service of a load balancer host, for all who reach the host.
	Serve(in Inputs) plan.Task
	// Local runs it as a static pod of a worker, for the worker alone.
	Local(in Inputs) plan.Task
	// Service is systemd's name for what Serve runs.
	Service() string
	// Check is a command that succeeds while the proxy on the host works. It is run as a user without rights.
	Check() string
}

// VirtualAddress has one host at a time hold an address, by which the API servers are reached.
type VirtualAddress interface {
	// Needs are what it takes from the bundle for a host that may have the address.
	Needs(in Inputs) Needs
	// Claim comes before anything on the host could hold the address, so that a reset takes it off when nothing can put it back.
	Claim(in Inputs) []plan.Task
	// Hold has the host take part. Beside a proxy (Inputs.External), a host whose proxy does not work gives the address away.
	Hold(in Inputs) plan.Task
	// Service is systemd's name for what Hold runs, "" if that is a pod.
	Service() string
	// Certificates are those of its steps that make some.
	Certificates(in Inputs) []step.Step
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import "github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"

// The outputs by which nodes of a plan come after each other, where one component makes what another takes.
var (
	// Initialized: the control plane has started on its first host.
	Initialized = graph.Output[string]{Name: "control-plane-initialized"}
	// APIAnswers: the API server is ready.
	APIAnswers = graph.Output[string]{Name: "api-answers"}
	// NetworkDeployed: the network is in the cluster.
	NetworkDeployed = graph.Output[string]{Name: "network-deployed"}
)

// Joined is made when the host's kubelet is in the cluster.
func Joined(host string) graph.Output[string] { return graph.Output[string]{Name: "joined/" + host} }

// EtcdMember is made when the host has a voting member.
func EtcdMember(host string) graph.Output[string] {
	return graph.Output[string]{Name: "etcd-member/" + host}
}

// Restarted is made when what was asked for is restarted on the host, and well.
func Restarted(host string) graph.Output[string] {
	return graph.Output[string]{Name: "restarted/" + host}
}

// Renewed is made when the host's certificates are renewed, and what uses them is well.
func Renewed(host string) graph.Output[string] {
	return graph.Output[string]{Name: "certificates-renewed/" + host}
}

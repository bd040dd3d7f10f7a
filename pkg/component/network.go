// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Network is the slot of what connects pods. One network fills it, for the life of the cluster.
type Network interface {
	// Needs are what it takes from the bundle for a host.
	Needs(in Inputs) Needs
	// Tasks deploy it when the API server answers (APIAnswers). The last of them makes NetworkDeployed, where there is an Agent.
	Tasks(in Inputs) []plan.Task
	// Agent is the namespace and the name of the DaemonSet whose Pod on a Node carries its packets. A Node is in use when that Pod
	// is Ready. Both are "" where users install the network: a Node is then in use when its kubelet has registered.
	Agent() (namespace, daemonSet string)
	// Release is the Helm release that it is, "" for both where it is none.
	Release() (namespace, name string)
	// PodMTU is the maximum transmission unit of pods' interfaces in bytes, where they are not configured by the network itself; 0 where
	// they always are.
	PodMTU(n spec.Network) int32
	// ByDefaultRoute reports whether Pods' packets leave a host by the interface of the default route, whichever has the Node's address.
	ByDefaultRoute(n spec.Network) bool
	// Residue is what its Pods leave on a host.
	Residue() step.Residue
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Node is a host as its kubelet has it.
type Node struct {
	Name, Address, ProviderID string
	// SecondAddress is the Node's of the other family in a dual stack cluster, "" elsewhere.
	SecondAddress string
	// Addresses are all that the host has.
	Addresses    []string
	ControlPlane bool
	Kubelet      spec.Kubelet
	Labels       map[string]string
	Taints       []corev1.Taint
	// ResolvConf is the file of name servers for pods; "" for the host's own.
	ResolvConf string
	// CgroupDriver is systemd or cgroupfs; CgroupVersion 1 or 2.
	CgroupDriver  string
	CgroupVersion int32
	Runtime       Runtime
	Swap          bool
}

// NodeOf is the Node that a target's host is to be; resolvConf is "" for the host's own.
func NodeOf(t *spec.Target, runtime Runtime, resolvConf string) Node {
	n := Node{
		Name: t.Host.Name, Address: t.Host.NodeAddress(), ProviderID: t.Host.ProviderID, Addresses: t.Host.Addresses(),
		ControlPlane: t.Host.Role == spec.RoleControlPlane, Kubelet: t.Kubelet(), Labels: t.Node.NodeLabels, Runtime: runtime,
		ResolvConf: resolvConf, Swap: t.System().Swap == spec.PolicyKeep,
	}
	if n.ControlPlane {
		n.Taints = append(n.Taints, corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule})
	}
	n.Taints = append(n.Taints, t.Node.NodeTaints...)
	return n
}

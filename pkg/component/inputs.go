// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Inputs are what a host's tasks are planned from: the target, what is known of the host, what fills the slots, and the artifacts
// that it needs. They are made once per host, so that every look-up that can fail has failed before a task is written down.
type Inputs struct {
	Target spec.Target
	System host.System
	// OS is the family of its operating system, in its release.
	OS family.Family
	Slots
	Artifacts
	// Files are the user's, of which each has been read.
	Files []step.Step
	// After are outputs that must be there before the host joins the control plane: of hosts in the same plan that join
	// before it. Hosts that are planned for one by one need none.
	After []string
	// AfterEtcd are outputs that must be there before the host joins etcd, or uses an etcd that runs elsewhere; see After.
	AfterEtcd []string
}

// Slots are the components that a cluster has where there is a choice.
type Slots struct {
	Etcd       Etcd
	Kubernetes Kubernetes
	Runtime    Runtime
	Network    Network
	// External and Internal are the load balancers, outside of the Nodes and on them.
	External, Internal LoadBalancer
	DNS                DNS
	ServiceProxy       ServiceProxy
	Addons             Addons
}

// Check refuses inputs that nothing can be planned from.
func (in Inputs) Check() error {
	t := in.Target
	switch {
	case in.System.Arch == "":
		return errors.New("its architecture is not known: observe it before it is planned for")
	case t.Cluster.ControlPlaneEndpoint.Host() == "":
		return errors.New("cluster.controlPlaneEndpoint: neither address nor domain is set: give the address at which the API server will be reached")
	case in.IsNode() && t.Cluster.Network.IsDualStack() && in.SecondAddress() == "":
		return fmt.Errorf("its Node needs an address of each family, and only %s is known: declare the other in internalAddresses",
			t.Host.NodeAddress())
	}
	return nil
}

// SecondAddress is the Node's of the other family in a dual stack cluster, "" elsewhere.
func (in Inputs) SecondAddress() string {
	if addresses := in.Target.NodeAddresses(in.System.DefaultIPv6); len(addresses) > 1 {
		return addresses[1]
	}
	return ""
}

// IsNode reports whether the host is to be a Node.
func (in Inputs) IsNode() bool { return in.Target.Host.Role.IsNode() }

// IsControlPlane reports whether the host is to be a part of the control plane.
func (in Inputs) IsControlPlane() bool { return in.Target.Host.Role == spec.RoleControlPlane }

// RunsEtcd reports whether the host has a member of etcd.
func (in Inputs) RunsEtcd() bool { return in.Target.HasEtcdMember() }

// First reports whether the host is the one on which the control plane begins.
func (in Inputs) First() bool {
	return in.IsControlPlane() && in.Target.BootstrapMode == spec.BootstrapInit
}

// Modules are those of the kernel that the host is to have: what pods' networks, and what leads to Services, need, and the user's.
func (in Inputs) Modules() []string {
	var names []string
	if in.IsNode() {
		names = append([]string{"overlay", "br_netfilter"}, in.ServiceProxy.Modules(in)...)
	}
	for _, m := range in.Target.System().Modules {
		if !slices.Contains(names, m) {
			names = append(names, m)
		}
	}
	return names
}

// Cluster is the cluster's specification, with what follows from its components.
func (in Inputs) Cluster() spec.Cluster {
	c := in.Target.Cluster
	// kube-system is exempt in any case.
	if namespace, _ := in.Network.Agent(); namespace != "" && namespace != metav1.NamespaceSystem {
		exempt := &c.Kubernetes.PodSecurity.ExemptNamespaces
		*exempt = append([]string{namespace}, *exempt...)
	}
	return c
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package direct plans and runs a cluster's pipelines from this process alone, without a management plane: for plans that
// are shown, written to a file and applied from it, and to look whether a cluster is as declared.
package direct

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// Namespace is that of a cluster's objects in the embedded plane. It is a part of provider IDs, and so of what a host must
// be.
const Namespace = "default"

// Targets is what each host must be. Of a managed cluster, one that a management plane has, it is what the reconcilers make
// of the config's objects: workers have the taint that Cluster API takes off again.
func Targets(c *config.Cluster, managed bool) []spec.Target {
	shared := *c.Spec.DeepCopy()
	shared.ControlPlaneEndpoint.Address = EndpointAddress(c)
	targets := make([]spec.Target, 0, len(c.Hosts))
	for i := range c.Hosts {
		h := c.Hosts[i].Spec()
		h.ProviderID = infrav1.ProviderIDPrefix + Namespace + "/" + h.Name
		t := spec.Target{
			ClusterName: c.Name, KubernetesVersion: c.KubernetesVersion, Cluster: *shared.DeepCopy(), Host: h,
			Node: spec.Node{NodeLabels: c.Hosts[i].Labels},
		}
		t.Default()
		if managed && h.Role == spec.RoleWorker {
			t.Node.NodeTaints = []corev1.Taint{{Key: clusterv1.NodeUninitializedTaint.Key, Effect: clusterv1.NodeUninitializedTaint.Effect}}
		}
		targets = append(targets, t)
	}
	return targets
}

// EndpointAddress is where the API server is reached: as declared, or at the control plane host.
func EndpointAddress(c *config.Cluster) string {
	address := c.Spec.ControlPlaneEndpoint.Address
	for i := range c.Hosts {
		if h := c.Hosts[i].Spec(); h.Role == spec.RoleControlPlane {
			address = cmp.Or(address, h.Address)
		}
	}
	return address
}

// Server is the URL of the API server. A domain that the config gives is known to the hosts, and need not be here.
func Server(c *config.Cluster) string {
	e := c.Spec.ControlPlaneEndpoint
	e.Domain, e.Address = "", EndpointAddress(c)
	return "https://" + e.HostPort()
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package direct plans and runs a cluster's pipelines from this process alone, without a management plane: for plans that
// are shown, written to a file and applied from it, and to look whether a cluster is as declared.
package direct

import (
	"cmp"
	"net"
	"strconv"

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
// of the config's objects: workers have the taint that Cluster API takes off again. Who began the control plane is not known
// here, and makes no difference to a host that is a part of it.
func Targets(c *config.Cluster, managed bool) []spec.Target {
	shared := *c.Spec.DeepCopy()
	shared.ControlPlaneEndpoint.Address = EndpointAddress(c)
	targets, all := make([]spec.Target, len(c.Hosts)), make([]*spec.Target, len(c.Hosts))
	for i := range c.Hosts {
		t := spec.Target{
			ClusterName: c.Name, KubernetesVersion: c.KubernetesVersion, Cluster: *shared.DeepCopy(), Host: c.Hosts[i].Spec(),
		}
		t.Host.InternalAddresses = shared.Network.Usable(t.Host.InternalAddresses)
		if t.Host.Role.IsNode() {
			t.Host.ProviderID = infrav1.ProviderIDPrefix + Namespace + "/" + t.Host.Name
			t.Node.NodeLabels = c.Hosts[i].Labels
		}
		targets[i], all[i] = t, &targets[i]
	}
	spec.Arrange(all)
	for _, t := range all {
		t.Default()
		if managed && t.Host.Role == spec.RoleWorker {
			t.Node.NodeTaints = []corev1.Taint{{Key: clusterv1.NodeUninitializedTaint.Key, Effect: clusterv1.NodeUninitializedTaint.Effect}}
		}
	}
	return targets
}

// EndpointAddress is the IP address at which the API server is reached: as declared (a virtual address, or a load balancer's),
// or that of the first control plane host. It is "" where DNS servers say it.
func EndpointAddress(c *config.Cluster) string {
	e := &c.Spec.ControlPlaneEndpoint
	if e.Address != "" || e.DomainResolution == spec.DomainExternalDNS {
		return e.Address
	}
	for i := range c.Hosts {
		if h := c.Hosts[i].Spec(); h.Role == spec.RoleControlPlane {
			return h.Address
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

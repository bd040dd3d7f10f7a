// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/coredns"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeproxy"
)

// DNS deploys the cluster's DNS server.
func DNS(in Inputs) plan.Task {
	return plan.Task{Name: "dns", Steps: []step.Step{coredns.Deploy(coredns.Settings{
		DNS: in.Target.Cluster.DNS, Image: in.refs["coredns"], Addresses: in.Target.Cluster.Network.DNSAddresses(),
		HostForwards: len(forwards(in.System)) > 0, After: apiAnswers,
	})}}
}

// KubeProxy deploys kube-proxy, where it is no unit.
func KubeProxy(in Inputs) plan.Task {
	return plan.Task{Name: "kube-proxy", Steps: []step.Step{kubeproxy.Deploy(in.Target.Cluster, apiAnswers)}}
}

// Flannel installs the pod network.
func Flannel(in Inputs) plan.Task {
	return plan.Task{Name: "flannel", Steps: []step.Step{flannel.Release(flannel.Settings{
		Network: in.Target.Cluster.Network, Chart: in.chart,
		Image: in.refs["flannel"], PluginImage: in.refs["flannel-cni-plugin"],
		After: apiAnswers, Done: networkDeployed,
	})}}
}

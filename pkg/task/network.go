// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/coredns"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeproxy"
)

// DNS deploys the cluster's DNS server.
func DNS(in component.Inputs) plan.Task {
	return plan.Task{Name: "dns", Steps: []step.Step{coredns.Deploy(coredns.Settings{
		DNS: in.Target.Cluster.DNS, Image: in.ImageRef("coredns"), Addresses: in.Target.Cluster.Network.DNSAddresses(),
		HostForwards: len(component.Forwards(in.System)) > 0, After: component.APIAnswers,
	})}}
}

// KubeProxy deploys kube-proxy, where it is no unit.
func KubeProxy(in component.Inputs) plan.Task {
	return plan.Task{Name: "kube-proxy", Steps: []step.Step{kubeproxy.Deploy(in.Target.Cluster, component.APIAnswers)}}
}

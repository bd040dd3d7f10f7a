// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/keepalived"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubevip"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/loadbalancer"
)

// Proxy runs the proxy of a load balancer host.
func Proxy(in component.Inputs) plan.Task {
	p, s := proxy(in), balanced(in, "")
	steps := []step.Step{p.Packages(in.PackageFiles.For(p.PackageNames()...))}
	if p.Takes(s) {
		steps = append(steps, p.Config(s))
	}
	return plan.Task{Name: p.Name(), Steps: steps}
}

// proxy is the one of load balancer hosts.
func proxy(in component.Inputs) loadbalancer.Program {
	if in.Target.Cluster.ControlPlaneEndpoint.External == spec.LoadBalancerKeepalivedNginx {
		return loadbalancer.Nginx
	}
	return loadbalancer.HAProxy
}

// balanced is what a proxy that listens there balances.
func balanced(in component.Inputs, bind string) loadbalancer.Settings {
	port := in.Target.Cluster.ControlPlaneEndpoint.Port
	return loadbalancer.Settings{Bind: bind, Port: port, Backends: in.Target.MembersWith(spec.RoleControlPlane), BackendPort: port}
}

// VirtualAddress lets the endpoint's address move between load balancer hosts.
func VirtualAddress(in component.Inputs) plan.Task {
	e, host := in.Target.Cluster.ControlPlaneEndpoint, in.Target.Host
	var peers []string
	for _, m := range in.Target.MembersWith(spec.RoleLoadBalancer) {
		if m.Name != host.Name {
			peers = append(peers, m.Address)
		}
	}
	return plan.Task{Name: "keepalived", Steps: []step.Step{
		keepalived.Packages(in.PackageFiles.For(keepalived.PackageNames()...)),
		keepalived.Config(keepalived.Settings{
			Name: host.Name, Interface: cmp.Or(e.Keepalived.Interface, in.System.DefaultInterface), Address: host.NodeAddress(),
			VIP: e.Address, RouterID: e.Keepalived.VirtualRouterID, Peers: peers,
			Priority: keepalived.Priority(host.NodeAddress(), peers), Check: proxy(in).Check(),
		}),
	}}
}

// LocalProxy runs a worker's own load balancer, as a static pod.
func LocalProxy(in component.Inputs) plan.Task {
	p, internal := loadbalancer.HAProxy, in.Target.Cluster.ControlPlaneEndpoint.Internal
	if internal == spec.LoadBalancerNginx {
		p = loadbalancer.Nginx
	}
	return plan.Task{Name: p.Name(), Steps: []step.Step{p.Pod(balanced(in, "127.0.0.1"), in.ImageRef(string(internal)))}}
}

// MovingAddress declares that a control plane host may get the endpoint's address.
func MovingAddress(in component.Inputs) plan.Task {
	return plan.Task{Name: "kube-vip", Steps: []step.Step{kubevip.Claim(kubeVIP(in))}}
}

// KubeVIP runs kube-vip on a control plane host, as a static pod.
func KubeVIP(in component.Inputs) plan.Task {
	return plan.Task{Name: "kube-vip", Steps: []step.Step{kubevip.Pod(kubeVIP(in))}}
}

func kubeVIP(in component.Inputs) kubevip.Settings {
	e := in.Target.Cluster.ControlPlaneEndpoint
	kubeconfig := "/etc/kubernetes/admin.conf"
	if in.First() && !in.IsBinary() {
		// Before the roles are bound that admin.conf needs, kubeadm init has this one.
		kubeconfig = "/etc/kubernetes/super-admin.conf"
	}
	return kubevip.Settings{
		VIP: e.Address, Interface: cmp.Or(e.KubeVIP.Interface, in.System.DefaultInterface), Port: e.Port, Image: e.KubeVIP.Image,
		Kubeconfig: kubeconfig,
	}
}

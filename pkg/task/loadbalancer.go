// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/haproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/keepalived"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubevip"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/nginx"
)

// Proxy runs the proxy of a load balancer host.
func Proxy(in Inputs) plan.Task {
	e := in.Target.Cluster.ControlPlaneEndpoint
	servers := in.Target.MembersWith(spec.RoleControlPlane)
	if e.External == spec.LoadBalancerKeepalivedNginx {
		steps := []step.Step{nginx.Packages()}
		if len(servers) > 0 { // it takes no configuration without a server
			steps = append(steps, nginx.Config(nginx.Settings{Port: e.Port, Backends: servers, BackendPort: e.Port}))
		}
		return plan.Task{Name: "nginx", Steps: steps}
	}
	return plan.Task{Name: "haproxy", Steps: []step.Step{
		haproxy.Packages(),
		haproxy.Config(haproxy.Settings{Port: e.Port, Backends: servers, BackendPort: e.Port}),
	}}
}

// VirtualAddress lets the endpoint's address move between load balancer hosts.
func VirtualAddress(in Inputs) plan.Task {
	e, host := in.Target.Cluster.ControlPlaneEndpoint, in.Target.Host
	var peers []string
	for _, m := range in.Target.MembersWith(spec.RoleLoadBalancer) {
		if m.Name != host.Name {
			peers = append(peers, m.Address)
		}
	}
	check := haproxy.Check
	if e.External == spec.LoadBalancerKeepalivedNginx {
		check = nginx.Check
	}
	return plan.Task{Name: "keepalived", Steps: []step.Step{
		keepalived.Packages(),
		keepalived.Config(keepalived.Settings{
			Name: host.Name, Interface: cmp.Or(e.Keepalived.Interface, in.System.DefaultInterface), Address: host.NodeAddress(),
			VIP: e.Address, RouterID: e.Keepalived.VirtualRouterID, Peers: peers,
			Priority: keepalived.Priority(host.NodeAddress(), peers), Check: check,
		}),
	}}
}

// LocalProxy runs a worker's own load balancer, as a static pod.
func LocalProxy(in Inputs) plan.Task {
	e := in.Target.Cluster.ControlPlaneEndpoint
	servers, image := in.Target.MembersWith(spec.RoleControlPlane), in.refs[string(e.Internal)]
	if e.Internal == spec.LoadBalancerNginx {
		return plan.Task{Name: "nginx", Steps: []step.Step{
			nginx.Pod(nginx.Settings{Bind: "127.0.0.1", Port: e.Port, Backends: servers, BackendPort: e.Port}, image),
		}}
	}
	return plan.Task{Name: "haproxy", Steps: []step.Step{
		haproxy.Pod(haproxy.Settings{Bind: "127.0.0.1", Port: e.Port, Backends: servers, BackendPort: e.Port}, image),
	}}
}

// MovingAddress declares that a control plane host may get the endpoint's address.
func MovingAddress(in Inputs) plan.Task {
	return plan.Task{Name: "kube-vip", Steps: []step.Step{kubevip.Claim(in.kubeVIP())}}
}

// KubeVIP runs kube-vip on a control plane host, as a static pod.
func KubeVIP(in Inputs) plan.Task {
	return plan.Task{Name: "kube-vip", Steps: []step.Step{kubevip.Pod(in.kubeVIP())}}
}

func (in Inputs) kubeVIP() kubevip.Settings {
	e := in.Target.Cluster.ControlPlaneEndpoint
	kubeconfig := "/etc/kubernetes/admin.conf"
	if in.first() && !in.isBinary() {
		// Before the roles are bound that admin.conf needs, kubeadm init has this one.
		kubeconfig = "/etc/kubernetes/super-admin.conf"
	}
	return kubevip.Settings{
		VIP: e.Address, Interface: cmp.Or(e.KubeVIP.Interface, in.System.DefaultInterface), Port: e.Port, Image: e.KubeVIP.Image,
		Kubeconfig: kubeconfig,
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// AskRestart writes down on the host what is to be restarted there, when the outputs after are there.
func AskRestart(in component.Inputs, r component.Restart, after ...string) plan.Task {
	return plan.Task{Name: "restart-request", Steps: []step.Step{r.Request(in, after...)}}
}

// RestartNode restarts the container runtime and the kubelet, and waits until the kubelet is healthy: it is not while the runtime is away.
func RestartNode(in component.Inputs, r component.Restart) plan.Task {
	t := plan.Task{Name: "restart-node"}
	if r.Has(spec.ComponentRuntime) {
		t.Steps = append(t.Steps, r.Unit(spec.ComponentRuntime, in.Runtime.Endpoint().Unit))
	}
	if r.Has(spec.ComponentKubelet) {
		t.Steps = append(t.Steps, r.Unit(spec.ComponentKubelet, kubelet.UnitName))
	}
	if len(t.Steps) > 0 {
		t.Steps = append(t.Steps, kubelet.Healthy(in.Node().Kubelet))
	}
	return t
}

// RestartControlPlane restarts etcd's member and what uses it.
func RestartControlPlane(in component.Inputs, r component.Restart) plan.Task {
	t := plan.Task{Name: "restart-control-plane"}
	if r.Has(spec.ComponentEtcd) {
		t.Steps = in.Etcd.Members().Restart(in, r)
	}
	if in.IsControlPlane() {
		t.Steps = in.Kubernetes.Restart(in, r, t.Steps)
	}
	return t
}

// RestartProxy restarts kube-proxy.
func RestartProxy(in component.Inputs, r component.Restart) plan.Task {
	t := plan.Task{Name: "restart-proxy"}
	if r.Has(spec.ComponentProxy) {
		t.Steps = []step.Step{r.Unit(spec.ComponentProxy, in.ServiceProxy.Unit()+".service")}
	}
	return t
}

// RestartLoadBalancer restarts a load balancer host's proxy and waits until it works, and then what holds the virtual address.
func RestartLoadBalancer(in component.Inputs, r component.Restart) plan.Task {
	t := plan.Task{Name: "restart-load-balancer"}
	if !r.Has(spec.ComponentLoadBalancer) {
		return t
	}
	if proxy := in.External.Proxy; proxy != nil {
		t.Steps = append(t.Steps, r.Unit(spec.ComponentLoadBalancer, proxy.Service()), component.Works(proxy))
	}
	if address := in.External.VirtualAddress; address != nil && address.Service() != "" {
		t.Steps = append(t.Steps, r.Unit(spec.ComponentLoadBalancer, address.Service()))
	}
	return t
}

// Restarted makes component.Restarted: all that was asked for is well.
func Restarted(in component.Inputs) plan.Task {
	return plan.Task{Name: "restarted", Steps: []step.Step{component.RestartDone(in.Target.Host.Name)}}
}

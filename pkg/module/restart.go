// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/task"
)

// Restartable are the components that the host has, by what fills its cluster's slots.
func Restartable(in component.Inputs) []spec.ComponentName {
	missing := map[spec.ComponentName]bool{
		spec.ComponentEtcd:         in.Etcd.Members() == nil,
		spec.ComponentProxy:        in.ServiceProxy.Unit() == "",
		spec.ComponentLoadBalancer: in.External.Proxy == nil && in.External.VirtualAddress == nil,
	}
	return slices.DeleteFunc(slices.Clone(spec.Components), func(c spec.ComponentName) bool {
		return missing[c] || !in.Target.Cluster.MayHave(c, in.Target.Host.Role)
	})
}

// Instead is the end of a sentence: what else can be done with a component that is not Restartable on any host of the cluster.
func Instead(in component.Inputs, c spec.ComponentName) string {
	switch sets := in.ServiceProxy.DaemonSets(); {
	case c == spec.ComponentProxy && len(sets) > 0:
		return "; what is a DaemonSet is restarted by kubectl -n kube-system rollout restart daemonset " + strings.Join(sets, " ")
	case c == spec.ComponentEtcd:
		return "; an etcd that others run is restarted by them"
	case c == spec.ComponentLoadBalancer:
		return "; what a Node has of a load balancer is a static pod"
	}
	return ""
}

// Restart restarts components on a host, in the order in which they need each other, when the outputs after are there.
func Restart(in component.Inputs, r component.Restart, after ...string) plan.Module {
	m := plan.Module{Name: "restart"}
	for _, t := range []plan.Task{
		task.AskRestart(in, r, after...),
		task.RestartNode(in, r),
		task.RestartControlPlane(in, r),
		task.RestartProxy(in, r),
		task.RestartLoadBalancer(in, r),
		task.Restarted(in),
	} {
		if len(t.Steps) > 0 {
			m.Tasks = append(m.Tasks, t)
		}
	}
	return m
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"slices"
	"strings"
)

// ComponentName is what can be restarted on a host by itself.
//
// +kubebuilder:validation:Enum=ContainerRuntime;Kubelet;Etcd;APIServer;ControllerManager;Scheduler;Proxy;LoadBalancer
type ComponentName string

const (
	// ComponentRuntime is the container runtime of a Node. Containers go on while it restarts.
	ComponentRuntime ComponentName = "ContainerRuntime"
	// ComponentKubelet is the kubelet of a Node. Pods go on while it restarts.
	ComponentKubelet ComponentName = "Kubelet"
	// ComponentEtcd is the host's member of etcd.
	ComponentEtcd ComponentName = "Etcd"
	// ComponentAPIServer is the kube-apiserver of a control plane host.
	ComponentAPIServer ComponentName = "APIServer"
	// ComponentControllerManager is the kube-controller-manager of a control plane host.
	ComponentControllerManager ComponentName = "ControllerManager"
	// ComponentScheduler is the kube-scheduler of a control plane host.
	ComponentScheduler ComponentName = "Scheduler"
	// ComponentProxy is the kube-proxy of a Node, where it is a unit and no DaemonSet.
	ComponentProxy ComponentName = "Proxy"
	// ComponentLoadBalancer is what a load balancer host runs. Load balancers that are pods of Nodes are none.
	ComponentLoadBalancer ComponentName = "LoadBalancer"
)

// Components are all, in the order in which they are restarted: what others need comes before them.
var Components = []ComponentName{
	ComponentRuntime, ComponentKubelet, ComponentEtcd, ComponentAPIServer, ComponentControllerManager, ComponentScheduler, ComponentProxy,
	ComponentLoadBalancer,
}

// ParseComponents are the components of a list such as "Kubelet,Etcd", each once, in the order of Components. Upper and lower case are the
// same. Its error names one that there is not.
func ParseComponents(list string) ([]ComponentName, error) {
	asked := map[ComponentName]bool{}
	for word := range strings.SplitSeq(list, ",") {
		at := slices.IndexFunc(Components, func(c ComponentName) bool { return strings.EqualFold(string(c), strings.TrimSpace(word)) })
		if at < 0 {
			return nil, fmt.Errorf("there is no component %q: there are %s", strings.TrimSpace(word), JoinComponents(Components))
		}
		asked[Components[at]] = true
	}
	return slices.DeleteFunc(slices.Clone(Components), func(c ComponentName) bool { return !asked[c] }), nil
}

// JoinComponents is the list that ParseComponents reads.
func JoinComponents(components []ComponentName) string {
	words := make([]string, len(components))
	for i, c := range components {
		words[i] = string(c)
	}
	return strings.Join(words, ",")
}

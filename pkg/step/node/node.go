// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node holds the steps that complete a host's Node through the cluster's API.
package node

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Metadata labels the Node with its role, which a kubelet may not do for itself, and keeps its labels and taints those that are
// declared: a kubelet sets them when it registers, and never again.
func Metadata(name, role string, labels map[string]string, taints []corev1.Taint) step.Step {
	all := map[string]string{"node-role.kubernetes.io/" + role: ""}
	if role == "control-plane" {
		all["node.kubernetes.io/exclude-from-external-load-balancers"] = ""
	}
	maps.Copy(all, labels)
	return step.New(step.Meta{
		Name: "node/metadata", Description: "keep the Node's role, labels and taints", Timeout: step.Duration(time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(time.Second), MaxDelay: step.Duration(10 * time.Second)},
	}, step.NodeMetadata{Node: name, Labels: all, Taints: taints})
}

// Drain cordons the Node and evicts its Pods, for steps that take drained: none does on a host whose programs stay. Disruption
// budgets are respected, for as long as the step may take. When what follows fails, the Node is uncordoned.
func Drain(name string, drained graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: "node/drain", Description: "cordon the Node and evict its Pods", Timeout: step.Duration(15 * time.Minute),
	}, step.Drain{Node: name, Output: drained.Name})
}

// Uncordon lets Pods come again to a Node that Drain has cordoned, in this run or an earlier one. daemonSets are those whose
// Pods run what the host has: they are made anew first. After must be there before.
func Uncordon(name string, daemonSets []string, after graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: "node/uncordon", Description: "let Pods come to the Node again", Timeout: step.Duration(5 * time.Minute),
	}, step.Uncordon{Node: name, DaemonSets: daemonSets, After: []string{after.Name}})
}

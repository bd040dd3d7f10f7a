// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node holds the steps that complete a host's Node through the cluster's API.
package node

import (
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Role labels the Node with its role, which a kubelet may not do for itself. It must come after the Node is there: applied
// before, it would make one.
func Role(name, role string) step.Step {
	labels := map[string]string{"node-role.kubernetes.io/" + role: ""}
	if role == "control-plane" {
		labels["node.kubernetes.io/exclude-from-external-load-balancers"] = ""
	}
	// A map of strings always marshals.
	manifest, _ := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": labels},
	})
	return step.New(step.Meta{
		Name: "node/role", Description: "label the Node with its role", Timeout: step.Duration(time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(time.Second), MaxDelay: step.Duration(10 * time.Second)},
	}, step.Apply{Title: "role of Node " + name, Manifest: step.Literal(string(manifest))})
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

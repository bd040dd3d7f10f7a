// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate holds the steps on the controller that wait for the cluster, or fetch from it what a host needs.
package gate

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// API waits until the API server answers; when is made then. After are outputs that must be there first.
func API(when graph.Output[string], after ...string) step.Step {
	return step.New(step.Meta{
		Name: "gate/api", Description: "wait for the API server", Timeout: step.Duration(20 * 60e9), Takes: after,
	}, step.Await{For: "api", Output: when.Name})
}

// Token makes a bootstrap token.
func Token(token graph.Output[string], after graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: "gate/token", Description: "make a bootstrap token", Timeout: step.Duration(60e9),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(1e9), MaxDelay: step.Duration(10e9)},
	}, step.Token{Output: token, TTL: step.Duration(30 * 60e9), After: []string{after.Name}})
}

// NodeReady waits until the Node is Ready. After are outputs that must be there first.
func NodeReady(name string, after ...string) step.Step {
	return step.New(step.Meta{
		Name: "gate/node-" + name, Description: "wait until the Node is Ready", Timeout: step.Duration(10 * 60e9), Takes: after,
	}, step.Await{For: "node", Name: name})
}

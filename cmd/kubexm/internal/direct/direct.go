// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"fmt"
	"os"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Tools are what an engine works with here.
type Tools struct {
	Hosts *access.Hosts
	// Bundle and Trust are for plans; what only looks at hosts, or gives them back, needs neither.
	Bundle *artifact.Bundle
	Trust  *Trust
	Reader event.Reader
}

// Engine is an engine with these tools.
func (t Tools) Engine() *engine.Engine {
	o := engine.Options{Dial: t.Hosts.Dial, Address: t.Hosts.Address, Reader: t.Reader, Holder: Holder()}
	if t.Bundle != nil {
		o.Artifacts = step.FromBundle(t.Bundle)
	}
	if t.Trust != nil {
		o.Secrets, o.Cluster = t.Trust.Secret, t.Trust.API
	}
	return engine.New(o)
}

// Holder names this process to whoever finds a host locked.
func Holder() string {
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown machine"
	}
	return fmt.Sprintf("kubexm %d@%s", os.Getpid(), machine)
}

// Observe looks at all hosts at once, and asks all that preflight wants to know. The error names the hosts that did not
// answer.
func (t Tools) Observe(ctx context.Context, targets []spec.Target) (map[string]*host.Facts, error) {
	queries := make(map[string]host.Query, len(targets))
	names := make([]string, 0, len(targets))
	for _, target := range targets {
		names = append(names, target.Host.Name)
		queries[target.Host.Name] = preflight.Query(target)
	}
	return t.Engine().Look(ctx, names, func(name string) host.Query { return queries[name] })
}

// Preflight is all that is wrong with the hosts.
func Preflight(targets []spec.Target, facts map[string]*host.Facts) []preflight.Problem {
	var problems []preflight.Problem
	for _, t := range targets {
		if f := facts[t.Host.Name]; f != nil {
			problems = append(problems, preflight.Check(t, f)...)
		}
	}
	return append(problems, preflight.CheckCluster(targets, facts)...)
}

// Plan is the whole cluster's plan.
func Plan(targets []spec.Target, facts map[string]*host.Facts, b *artifact.Bundle) (*plan.Plan, error) {
	nodes := make([]pipeline.Node, 0, len(targets))
	for _, t := range targets {
		nodes = append(nodes, pipeline.Node{Target: t, System: facts[t.Host.Name].System})
	}
	return pipeline.CreateCluster(targets[0].ClusterName, nodes, b)
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	// Owners say whose the hosts are.
	Owners Owners
	// Bundle and Trust are for plans; what only observes hosts, or resets them, needs neither.
	Bundle *artifact.Bundle
	Trust  *Trust
	// Snapshot is the path of the snapshot that a plan has for a restore of etcd; there is no Bundle then.
	Snapshot string
	Reader   event.Reader
	// Assume, if it is not nil, alters what was seen of a host before anything is decided from it: for a look at what would be, not for
	// changes.
	Assume func(name string, seen *host.Facts)
	// OnFailure is what becomes of what a run has changed when a step fails; Stop if it is "".
	OnFailure spec.FailurePolicy
}

// Engine is an engine with these tools.
func (t Tools) Engine() *engine.Engine {
	o := engine.Options{
		Dial: t.Hosts.Dial, Ownership: t.Owners.Of, Address: t.Hosts.Address,
		Reader: t.Reader, Holder: Holder(), Policy: engine.Policy(t.OnFailure),
	}
	if t.Assume != nil {
		o.Dial = func(ctx context.Context, name string) (host.Host, error) {
			h, err := t.Hosts.Dial(ctx, name)
			if err != nil {
				return nil, err
			}
			return assuming{h, t.Assume}, nil
		}
	}
	if t.Bundle != nil {
		o.Artifacts = step.FromBundle(t.Bundle)
	}
	if t.Snapshot != "" {
		o.Artifacts = file(t.Snapshot)
	}
	if t.Trust != nil {
		o.Secrets, o.Cluster = t.Trust.Secret, t.Trust.API
	}
	return engine.New(o)
}

// assuming is a host of which something else is taken for seen.
type assuming struct {
	host.Host
	assume func(name string, seen *host.Facts)
}

// Observe observes the host.
func (h assuming) Observe(ctx context.Context, q host.Query) (*host.Facts, error) {
	seen, err := h.Host.Observe(ctx, q)
	if err == nil {
		h.assume(h.Name(), seen)
	}
	return seen, err
}

// file is the one content that a plan wants, by its path.
type file string

// Open opens it. Hosts verify what they are sent.
func (f file) Open(context.Context, step.Artifact) (io.ReadCloser, error) { return os.Open(string(f)) }

// Holder names this process to anyone who finds a host locked.
func Holder() string {
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown machine"
	}
	return fmt.Sprintf("kubexm %d@%s", os.Getpid(), machine)
}

// Observe reads all hosts at once, and asks all that preflight wants to know. The error names the hosts that did not
// answer, and those that are somebody else's: there are no facts of either.
func (t Tools) Observe(ctx context.Context, targets []spec.Target) (map[string]*host.Facts, error) {
	queries := make(map[string]host.Query, len(targets))
	names := make([]string, 0, len(targets))
	for _, target := range targets {
		names = append(names, target.Host.Name)
		queries[target.Host.Name] = preflight.Query(target)
	}
	facts, err := t.Engine().Look(ctx, names, func(name string) host.Query { return queries[name] })
	var failed *engine.Error
	if errors.As(err, &failed) {
		for _, f := range failed.Failures {
			delete(facts, f.Host) // somebody else's
		}
	}
	return facts, err
}

// Preflight is all that is wrong with the hosts.
func (t Tools) Preflight(ctx context.Context, targets []spec.Target, facts map[string]*host.Facts) ([]preflight.Problem, error) {
	var problems []preflight.Problem
	for _, target := range targets {
		f := facts[target.Host.Name]
		if f == nil {
			continue
		}
		claim, err := t.Owners.Of(ctx, target.Host.Name)
		if err != nil {
			return nil, err
		}
		problems = append(problems, preflight.Check(target, f, claim)...)
	}
	return append(problems, preflight.CheckCluster(targets, facts)...), nil
}

// Systems are what plans need of the facts.
func Systems(facts map[string]*host.Facts) map[string]host.System {
	systems := make(map[string]host.System, len(facts))
	for name, f := range facts {
		systems[name] = f.System
	}
	return systems
}

// Plan is the whole cluster's plan.
func Plan(targets []spec.Target, systems map[string]host.System, b *artifact.Bundle) (*plan.Plan, error) {
	nodes := make([]pipeline.Node, 0, len(targets))
	for _, t := range targets {
		nodes = append(nodes, pipeline.Node{Target: t, System: systems[t.Host.Name]})
	}
	return pipeline.CreateCluster(targets[0].ClusterName, nodes, b)
}

// Compare observes every host and the cluster, and returns what differs from what is declared. systems is what is
// remembered of the hosts; what is seen now replaces it there. Hosts that turn out to be others are planned for and looked
// at once more.
func (t Tools) Compare(ctx context.Context, targets []spec.Target, systems map[string]host.System) (engine.Report, error) {
	for _, target := range targets {
		if _, known := systems[target.Host.Name]; !known {
			facts, err := t.Observe(ctx, targets)
			if err != nil {
				return engine.Report{}, err
			}
			maps.Copy(systems, Systems(facts))
			break
		}
	}
	for again := true; ; again = false {
		p, err := Plan(targets, systems, t.Bundle)
		if err != nil {
			return engine.Report{}, err
		}
		report, err := t.Engine().Check(ctx, p)
		if err != nil {
			return report, err
		}
		stale := false
		for _, h := range report.Hosts {
			stale = stale || pipeline.Stale(systems[h.Host], h.Facts.System)
			systems[h.Host] = h.Facts.System
		}
		if !stale || !again {
			return report, nil
		}
	}
}

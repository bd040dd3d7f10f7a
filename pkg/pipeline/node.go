// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/task"
)

// Node is one host that is to become, or to stay, a Node.
type Node struct {
	// Target is what it must be.
	Target spec.Target
	// System is what was last seen of it. Plans depend on it: its architecture, whether it is a container, its name
	// servers. See Stale.
	System host.System
}

// Stale reports whether a plan that was made with the facts in was is out of date now that seen was observed. Callers
// plan from remembered facts, so that a converged host costs one exchange, and plan anew when this says so.
func Stale(was, seen host.System) bool { return task.Relevant(was) != task.Relevant(seen) }

// CreateControlPlane plans the first control plane host: an API server, and in it the cluster's DNS and network.
func CreateControlPlane(n Node, b *artifact.Bundle) (*plan.Plan, error) {
	p := plan.New("CreateControlPlane", n.Target.ClusterName)
	in, err := inputs(n, b, spec.RoleControlPlane)
	if err != nil {
		return nil, err
	}
	controlPlane(p, in)
	return p.Plan()
}

// JoinWorker plans a host that joins as a worker. Its gates wait for the cluster's API.
func JoinWorker(n Node, b *artifact.Bundle) (*plan.Plan, error) {
	p := plan.New("JoinWorker", n.Target.ClusterName)
	in, err := inputs(n, b, spec.RoleWorker)
	if err != nil {
		return nil, err
	}
	p.Gate(
		module.API(in),
		module.BootstrapToken(in),
	)
	worker(p, in)
	return p.Plan()
}

// CreateCluster is the union of its hosts' pipelines: the same steps in the same order, with the same gates, which here
// are the edges between hosts. One of the hosts, and only one, has the role control-plane.
func CreateCluster(name string, nodes []Node, b *artifact.Bundle) (*plan.Plan, error) {
	p := plan.New("CreateCluster", name)
	if err := checkHosts(name, nodes); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	var workers []task.Inputs
	for _, n := range nodes {
		in, err := inputs(n, b, n.Target.Host.Role)
		if err != nil {
			return nil, err
		}
		if n.Target.Host.Role != spec.RoleControlPlane {
			workers = append(workers, in)
			continue
		}
		controlPlane(p, in)
	}
	if len(workers) > 0 {
		p.Gate(module.BootstrapToken(workers[0]))
	}
	for _, in := range workers {
		worker(p, in)
	}
	return p.Plan()
}

// checkHosts refuses what would be no cluster.
func checkHosts(cluster string, nodes []Node) error {
	var first []string
	for _, n := range nodes {
		if n.Target.ClusterName != cluster {
			return fmt.Errorf("host %s is for cluster %s", n.Target.Host.Name, n.Target.ClusterName)
		}
		if n.Target.Host.Role == spec.RoleControlPlane {
			first = append(first, n.Target.Host.Name)
		}
	}
	switch len(first) {
	case 0:
		return fmt.Errorf("no host has the role %s: give it to one", spec.RoleControlPlane)
	case 1:
		return nil
	}
	return fmt.Errorf("the hosts %s have the role %s: this version makes control planes of one host: leave it to one",
		strings.Join(first, ", "), spec.RoleControlPlane)
}

func inputs(n Node, b *artifact.Bundle, role spec.Role) (task.Inputs, error) {
	if n.Target.Host.Role != role {
		return task.Inputs{}, fmt.Errorf("host %s: its role is %q; this plan is for the role %s", n.Target.Host.Name, n.Target.Host.Role, role)
	}
	in, err := task.NewInputs(n.Target, n.System, b)
	if err != nil {
		return in, fmt.Errorf("host %s: %w", n.Target.Host.Name, err)
	}
	return in, nil
}

func controlPlane(p *plan.Builder, in task.Inputs) {
	p.Host(in.Target.Host.Name,
		module.OS(in),
		module.Runtime(in),
		module.ControlPlane(in),
	)
	p.Gate(
		module.API(in),
		module.Network(in),
		module.NodeReady(in),
	)
}

func worker(p *plan.Builder, in task.Inputs) {
	p.Host(in.Target.Host.Name,
		module.OS(in),
		module.Runtime(in),
		module.Worker(in),
	)
	p.Gate(module.NodeReady(in))
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Restart is one of components on hosts, which somebody asks for.
type Restart = module.RestartRequest

// Restarted are the components on one host that a Restart restarts.
type Restarted struct {
	Host       string
	Components []spec.ComponentName
}

// Restarts are the hosts on which r has something to restart, in the order in which that is done: etcd's, the control plane's, the
// workers', the load balancers'. Of r's components a host has those that are there: a worker has no Etcd. One that no host of such a
// cluster could have is refused, and so are hosts of which none has any. The errors name what there is.
func Restarts(targets []spec.Target, r Restart) ([]Restarted, error) {
	if len(r.Components) == 0 {
		return nil, fmt.Errorf("no component is named: there are %s", spec.JoinComponents(spec.Components))
	}
	hosts, err := restarting(targets)
	if err != nil {
		return nil, err
	}
	var found []Restarted
	var have []string
	for _, in := range hosts {
		all := module.Restartable(in)
		if here := r.Of(all); len(here.Components) > 0 {
			found = append(found, Restarted{in.Target.Host.Name, here.Components})
		}
		have = append(have, fmt.Sprintf("%s has %s", in.Target.Host.Name, spec.JoinComponents(all)))
	}
	if len(targets) > 0 {
		if err := checkKind(targets[0], r); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no %s to restart: %s", spec.JoinComponents(r.Components), strings.Join(have, "; "))
	}
	return found, nil
}

// checkKind refuses what no host of t's cluster has, whatever its role. All targets are of one cluster.
func checkKind(t spec.Target, r Restart) error {
	in, err := module.NewInstalled(t)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", t.ClusterName, err)
	}
	kind := ofKind(in, module.Restartable, spec.RoleControlPlane, spec.RoleWorker, spec.RoleEtcd, spec.RoleLoadBalancer)
	for _, c := range r.Components {
		if !slices.Contains(kind, c) {
			all := slices.DeleteFunc(slices.Clone(spec.Components), func(c spec.ComponentName) bool { return !slices.Contains(kind, c) })
			return fmt.Errorf("cluster %s has no %s that can be restarted on its hosts; it has %s%s", t.ClusterName, c, spec.JoinComponents(all), module.Instead(in, c))
		}
	}
	return nil
}

// RestartComponents plans that Restarts are done: on one host after the other, each when what was restarted on the one before is well. On a
// host a component is restarted that began before that was asked for, so the plan can be run again.
func RestartComponents(name string, targets []spec.Target, r Restart) (*plan.Plan, error) {
	found, err := Restarts(targets, r)
	if err != nil {
		return nil, err
	}
	hosts, err := restarting(targets)
	if err != nil {
		return nil, err
	}
	p := newLayout("RestartComponents", name)
	var after []string
	for _, in := range hosts {
		host := in.Target.Host.Name
		at := slices.IndexFunc(found, func(f Restarted) bool { return f.Host == host })
		if at < 0 {
			continue
		}
		p.host(in, module.Restart(in, r.Of(found[at].Components), after...))
		after = []string{module.Restarted(in)}
	}
	return p.plan()
}

// restarting are the hosts in the order in which they are restarted.
func restarting(targets []spec.Target) ([]module.Inputs, error) {
	all, err := renewing(targets, nil)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if t.Host.Role != spec.RoleLoadBalancer {
			continue
		}
		in, err := module.NewInstalled(t)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", t.Host.Name, err)
		}
		all = append(all, in)
	}
	return all, nil
}

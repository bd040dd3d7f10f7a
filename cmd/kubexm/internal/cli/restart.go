// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// restartOptions are the flags of "restart".
type restartOptions struct {
	source
	hosts  []string
	dryRun bool
}

func (a *app) restart() *cobra.Command {
	o := &restartOptions{}
	cmd := &cobra.Command{
		Use:   "restart COMPONENT[,COMPONENT...] -f config.yaml",
		Short: "Restart components of a cluster, on one host after the other",
		Long: `Restarts components on one host after the other, each when what was restarted on the host before is well, and stops at the first
that does not come back. Components are ContainerRuntime, Kubelet, Etcd, APIServer, ControllerManager, Scheduler, Proxy (kube-proxy, where it
is a unit) and LoadBalancer (on load balancer hosts), in upper or lower case. Pods go on while the runtime or the kubelet restarts.

A host restarts what it has of them; what none has is refused. Etcd and what uses it restart on one control plane host of the cluster at
a time, whoever else restarts or changes one. A restart that was interrupted is repeated by the same command.`,
		Example:           "  kubexm restart kubelet,containerruntime -f config.yaml --host node1\n  kubexm restart apiserver -f config.yaml --dry-run",
		Args:              cobra.ExactArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.restartComponents(cmd.Context(), o, args[0]) },
		ValidArgsFunction: cobra.FixedCompletions(componentNames(), cobra.ShellCompDirectiveNoFileComp),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", "the config file that declares the cluster")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml") // the flag is there
	o.addKeyFlags(cmd)
	o.addSerialFlag(cmd)
	flags.StringSliceVar(&o.hosts, "host", nil, "names of hosts (default all that have one of the components)")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would be restarted, in which order, and do nothing")
	return cmd
}

func componentNames() []string {
	var names []string
	for _, c := range spec.Components {
		names = append(names, strings.ToLower(string(c)))
	}
	return names
}

// restarted is a cluster some of whose components are restarted.
type restarted struct {
	*config.Cluster
	dir   clusterdir.Dir
	hosts *access.Hosts
	// all are the cluster's targets, and targets those that are asked for.
	all, targets []spec.Target
	restart      pipeline.Restart
	// on are the hosts in the order in which they have it done.
	on []pipeline.Restarted
}

func (a *app) restartComponents(ctx context.Context, o *restartOptions, components string) error {
	began := time.Now()
	r, err := a.restarted(o, components, began)
	if err != nil {
		return err
	}
	p, err := pipeline.RestartComponents(r.Name, r.targets, r.restart)
	if err != nil {
		return err
	}
	if o.dryRun {
		return a.showSteps(p)
	}
	unlock, err := r.dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	trust := &planner.Trust{Cluster: r.Name, Server: planner.Server(r.Cluster)}
	if trust.Authorities, err = r.dir.Authorities(false); err != nil {
		return err
	}
	return a.showing(r.about, func(reader event.Reader) (string, error) {
		tools := planner.Tools{Hosts: r.hosts, Owners: owners(r.dir, rolesOf(r.all), nil), Trust: trust, Reader: reader}
		engine := tools.Engine()
		facts, err := engine.Look(ctx, p.Hosts, func(string) host.Query { return host.Query{} })
		if err != nil {
			return "", err
		}
		for _, name := range p.Hosts { // before the first of them is touched
			if !facts[name].Changed() {
				return "", fmt.Errorf("host %s was not made a part of %s yet, and has nothing to restart: kubexm create cluster -f %s", name, r.Name, o.file)
			}
		}
		if err := a.guard(r.dir, tools, o.stateIsCurrent).Begin(ctx, nil); err != nil {
			return "", err
		}
		if _, err := engine.Run(ctx, p); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s of %s on %s restarted in %s.", spec.JoinComponents(r.restart.Components), r.Name, count(len(r.on), "host"),
			seconds(time.Since(began))), nil
	})
}

// restarted reads the config file, and finds the hosts that have the components. Nothing is touched.
func (a *app) restarted(o *restartOptions, components string, asked time.Time) (*restarted, error) {
	r := &restarted{restart: pipeline.Restart{Asked: asked}}
	var err error
	if r.restart.Components, err = spec.ParseComponents(components); err != nil {
		return nil, usageError{err}
	}
	if r.Cluster, err = a.load(&o.source); err != nil {
		return nil, err
	}
	if r.dir, err = clusterdir.Of(a.stateRoot, r.Name); err != nil {
		return nil, usageError{err}
	}
	if r.all, err = planner.Targets(r.Cluster); err != nil {
		return nil, usageError{err}
	}
	for _, name := range o.hosts {
		if _, is := rolesOf(r.all)[name]; !is {
			return nil, usage("--host: cluster %s has no host %s", r.Name, name)
		}
	}
	r.targets = slices.DeleteFunc(slices.Clone(r.all), func(t spec.Target) bool {
		return len(o.hosts) > 0 && !slices.Contains(o.hosts, t.Host.Name)
	})
	if r.on, err = pipeline.Restarts(r.targets, r.restart); err != nil {
		return nil, usageError{err}
	}
	// Who names a host means that host, and who names a component wants one.
	for _, name := range o.hosts {
		if !slices.ContainsFunc(r.on, func(on pipeline.Restarted) bool { return on.Host == name }) {
			return nil, usage("--host: %s has none of %s", name, spec.JoinComponents(r.restart.Components))
		}
	}
	for _, c := range r.restart.Components {
		if !slices.ContainsFunc(r.on, func(on pipeline.Restarted) bool { return slices.Contains(on.Components, c) }) {
			return nil, usage("none of the hosts has %s to restart", c)
		}
	}
	if known, err := r.dir.Known(); err != nil {
		return nil, err
	} else if !known {
		return nil, usage("nothing is known of cluster %s in %s: its components are restarted where it was made", r.Name, a.stateRoot)
	}
	r.hosts, err = access.New(r.Hosts, a.trusting(&o.source, r.dir))
	return r, err
}

// about says what a host is.
func (r *restarted) about(name string) string { return roleName(rolesOf(r.targets)[name]) }

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
)

func (a *app) getClusters() *cobra.Command {
	f := newFormat()
	cmd := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"cluster"},
		Short:   "List clusters",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dirs, err := clusterdir.List(a.stateRoot)
			if err != nil {
				return err
			}
			clusters, err := inspect.Clusters(cmd.Context(), dirs)
			if err != nil {
				return err
			}
			return list(a.Out, f, clusters, clusterTable(time.Now()))
		},
	}
	f.addFlag(cmd)
	return cmd
}

func clusterTable(now time.Time) table[inspect.Cluster] {
	return table[inspect.Cluster]{
		{name: "NAME", value: func(c inspect.Cluster) string { return c.Name }},
		{name: "VERSION", value: func(c inspect.Cluster) string { return c.KubernetesVersion }},
		{name: "STATUS", value: func(c inspect.Cluster) string { return c.Status }},
		{name: "CONTROL PLANES", value: func(c inspect.Cluster) string { return fmt.Sprint(c.ControlPlanes) }},
		{name: "WORKERS", value: func(c inspect.Cluster) string { return fmt.Sprint(c.Workers) }},
		{name: "ETCD HOSTS", wide: true, value: func(c inspect.Cluster) string { return fmt.Sprint(c.EtcdHosts) }},
		{name: "LOAD BALANCERS", wide: true, value: func(c inspect.Cluster) string { return fmt.Sprint(c.LoadBalancers) }},
		{name: "CONVERGED", value: func(c inspect.Cluster) string { return ago(now, c.ReadyTime) }},
		{name: "SERVER", wide: true, value: func(c inspect.Cluster) string { return c.Server }},
		{name: "BUNDLE", wide: true, value: func(c inspect.Cluster) string { return c.Bundle }},
	}
}

func (a *app) getNodes() *cobra.Command {
	f := newFormat()
	cmd := &cobra.Command{
		Use:     "nodes [CLUSTER]",
		Aliases: []string{"node"},
		Short:   "List a cluster's Nodes, as its API has them (of the only one if none is named)",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.onlyCluster(strings.Join(args, ""))
			if err != nil {
				return err
			}
			dir, _, err := a.known(name)
			if err != nil {
				return err
			}
			nodes, err := inspect.Nodes(cmd.Context(), dir)
			if err != nil {
				return fmt.Errorf("cluster %s: %w", name, err)
			}
			return list(a.Out, f, nodes, nodeTable(time.Now()))
		},
	}
	f.addFlag(cmd)
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}

func nodeTable(now time.Time) table[inspect.Node] {
	return table[inspect.Node]{
		{name: "NAME", value: func(n inspect.Node) string { return n.Name }},
		{name: "ROLE", value: func(n inspect.Node) string { return n.Role }},
		{name: "STATUS", value: func(n inspect.Node) string { return n.Status }},
		{name: "VERSION", value: func(n inspect.Node) string { return n.Version }},
		{name: "ADDRESS", value: func(n inspect.Node) string { return n.Address }},
		{name: "JOINED", value: func(n inspect.Node) string { return ago(now, n.Since) }},
		{name: "OS", wide: true, value: func(n inspect.Node) string { return n.OS }},
		{name: "KERNEL", wide: true, value: func(n inspect.Node) string { return n.Kernel }},
		{name: "RUNTIME", wide: true, value: func(n inspect.Node) string { return n.Runtime }},
		{name: "MESSAGE", wide: true, value: func(n inspect.Node) string { return n.Message }},
	}
}

func (a *app) getHosts() *cobra.Command {
	f, s := newFormat(), &source{}
	cmd := &cobra.Command{
		Use:     "hosts [CLUSTER]",
		Aliases: []string{"host"},
		Short:   "List a cluster's hosts, as they answer now (of the only one if none is named)",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.onlyCluster(strings.Join(args, ""))
			if err != nil {
				return err
			}
			hosts, err := a.lookAtHosts(cmd.Context(), s, name)
			if err != nil {
				return err
			}
			return list(a.Out, f, hosts, hostTable())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&s.file, "file", "f", "", "the config file, for hosts that need a password")
	s.addKeyFlags(cmd)
	f.addFlag(cmd)
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}

// lookAtHosts observes all hosts of a cluster.
func (a *app) lookAtHosts(ctx context.Context, s *source, cluster string) ([]inspect.Host, error) {
	dir, _, err := a.known(cluster)
	if err != nil {
		return nil, err
	}
	known, hosts, err := a.reach(s, dir)
	if err != nil {
		return nil, err
	}
	return inspect.Hosts(ctx, known.Inventory, planner.Tools{Hosts: hosts, Owners: known.owners(dir, nil)})
}

func hostTable() table[inspect.Host] {
	return table[inspect.Host]{
		{name: "NAME", value: func(h inspect.Host) string { return h.Name }},
		{name: "ROLE", value: func(h inspect.Host) string { return string(h.Role) }},
		{name: "ADDRESS", value: func(h inspect.Host) string { return h.Address }},
		{name: "STATUS", value: func(h inspect.Host) string { return h.Status }},
		{name: "CPUS", value: func(h inspect.Host) string { return number(int64(h.CPUs)) }},
		{name: "MEMORY", value: func(h inspect.Host) string { return gibibytes(h.MemoryBytes) }},
		{name: "CHANGES", value: func(h inspect.Host) string { return fmt.Sprint(h.Changes) }},
		{name: "OS", wide: true, value: func(h inspect.Host) string { return h.OS }},
		{name: "KERNEL", wide: true, value: func(h inspect.Host) string { return h.Kernel }},
		{name: "ARCH", wide: true, value: func(h inspect.Host) string { return h.Arch }},
		{name: "USER", wide: true, value: func(h inspect.Host) string { return h.User }},
		{name: "MESSAGE", wide: true, value: func(h inspect.Host) string { return h.Message }},
	}
}

func number(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func gibibytes(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// ago is how long ago something was.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(then)) + " ago"
}

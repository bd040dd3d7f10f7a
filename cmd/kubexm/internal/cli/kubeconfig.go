// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
)

func (a *app) kubeconfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kubeconfig NAME",
		Short:   "Print a new kubeconfig for a cluster's administrator, good for a year",
		Example: "  kubexm kubeconfig prod > ~/.kube/config",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, known, err := a.known(args[0])
			if err != nil {
				return err
			}
			trust := &planner.Trust{Cluster: known.Cluster, Server: known.Server}
			if trust.Authorities, err = dir.Authorities(false); err != nil {
				return err
			}
			kubeconfig, err := trust.Kubeconfig(kubeconfigValidity)
			if err != nil {
				return err
			}
			_, err = a.Out.Write(kubeconfig.Reveal())
			return err
		},
	}
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}

// known is what is kept of a cluster.
func (a *app) known(name string) (clusterdir.Dir, *clusterdir.Inventory, error) {
	dir, err := clusterdir.Of(a.stateRoot, name)
	if err != nil {
		return dir, nil, usageError{err}
	}
	known, err := dir.Inventory()
	if err == nil && known == nil {
		err = a.unknown(dir)
	}
	return dir, known, err
}

// unknown says that there is no inventory of a cluster, and tells that from a cluster that is not there.
func (a *app) unknown(dir clusterdir.Dir) error {
	if left, err := dir.Known(); err != nil {
		return err
	} else if left {
		return usage("the inventory of cluster %s is missing in %s, where other parts of its state are: kubexm create cluster -f config.yaml writes it, "+
			"and kubexm delete cluster -f config.yaml does without", dir.Cluster, dir.Path())
	}
	return usage("there is no cluster %s in %s", dir.Cluster, a.stateRoot)
}

// completeClusters completes names of clusters.
func (a *app) completeClusters(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	dirs, err := clusterdir.List(a.stateRoot)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, 0, len(dirs))
	for _, d := range dirs {
		names = append(names, d.Cluster)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

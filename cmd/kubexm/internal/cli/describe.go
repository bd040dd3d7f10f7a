// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
)

// description is a cluster with all that can be seen of it.
type description struct {
	inspect.Cluster `json:",inline"`
	Kubeconfig      string         `json:"kubeconfig"`
	Nodes           []inspect.Node `json:"nodes"`
	Hosts           []inspect.Host `json:"hosts"`
}

func (a *app) describeCluster() *cobra.Command {
	f, s := newFormat(), &source{}
	cmd := &cobra.Command{
		Use:   "cluster NAME | -f config.yaml",
		Short: "Show a cluster with its Nodes and hosts, as they are now",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := clusterName(args, s.file)
			if err != nil {
				return err
			}
			d, err := a.describe(cmd.Context(), s, name)
			if err != nil {
				return err
			}
			if f.structured() {
				return f.encode(a.Out, d)
			}
			return a.showDescription(d, f)
		},
	}
	cmd.Flags().StringVarP(&s.file, "file", "f", "", "the config file, for hosts that need a password")
	s.addKeyFlags(cmd)
	f.addFlag(cmd)
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}

func (a *app) describe(ctx context.Context, s *source, name string) (*description, error) {
	dir, _, err := a.known(name)
	if err != nil {
		return nil, err
	}
	d := &description{Kubeconfig: dir.Kubeconfig(), Nodes: []inspect.Node{}}
	if d.Cluster, err = inspect.ClusterOf(ctx, dir); err != nil {
		return nil, err
	}
	if d.Hosts, err = a.lookAtHosts(ctx, s, name); err != nil {
		return nil, err
	}
	// Why there are none is said by the cluster's own message.
	if nodes, err := inspect.Nodes(ctx, dir); err == nil {
		d.Nodes = nodes
	}
	return d, nil
}

func (a *app) showDescription(d *description, f *format) error {
	fmt.Fprintf(a.Out, "Name:        %s\n", d.Name)
	fmt.Fprintf(a.Out, "Kubernetes:  %s\n", d.KubernetesVersion)
	fmt.Fprintf(a.Out, "Status:      %s\n", d.Status)
	if d.Message != "" {
		fmt.Fprintf(a.Out, "             %s\n", d.Message)
	}
	fmt.Fprintf(a.Out, "As declared: %s\n", ago(time.Now(), d.ReadyTime))
	fmt.Fprintf(a.Out, "API server:  %s\n", d.Server)
	fmt.Fprintf(a.Out, "Kubeconfig:  %s\n", d.Kubeconfig)
	fmt.Fprintf(a.Out, "Bundle:      %s\n", d.Bundle)
	fmt.Fprintln(a.Out, "\nHosts:")
	if err := list(a.Out, f, d.Hosts, hostTable()); err != nil {
		return err
	}
	if len(d.Nodes) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out, "\nNodes:")
	return list(a.Out, f, d.Nodes, nodeTable(time.Now()))
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
)

// description is a cluster with all that can be seen of it.
type description struct {
	inspect.Cluster `json:",inline"`
	Kubeconfig      string         `json:"kubeconfig"`
	Nodes           []inspect.Node `json:"nodes"`
	Hosts           []inspect.Host `json:"hosts"`
	// Drift is set where the config file is given: what differs from what that declares. DriftMessage is why it is not known.
	Drift        []difference `json:"drift,omitempty"`
	DriftMessage string       `json:"driftMessage,omitempty"`
	// rendered is Drift as "kubexm plan" shows it.
	rendered string
}

// difference is one thing on a host, or in the cluster, that is not up to date. Host is empty for what the cluster's API has.
type difference struct {
	Host     string `json:"host,omitempty"`
	Step     string `json:"step"`
	Resource string `json:"resource,omitempty"`
	Found    string `json:"found,omitempty"`
	Expected string `json:"expected,omitempty"`
	// Diff are the first lines in which content differs, where everybody on the host may read it.
	Diff string `json:"diff,omitempty"`
	// Message is why it cannot be told yet whether it differs.
	Message string `json:"message,omitempty"`
}

func (a *app) describeCluster() *cobra.Command {
	f, s := newFormat(), &source{}
	cmd := &cobra.Command{
		Use:   "cluster [NAME] [-f config.yaml]",
		Short: "Show a cluster with its Nodes and hosts, as they are now, and what has drifted",
		Long: `Observes a cluster's API and all of its hosts, and changes nothing.

With the config file the hosts are compared with what that declares, and what differs is shown as "kubexm plan" shows it: what is there
and what should be there, and, of files that everybody on the host may read, in which lines.`,
		Args: cobra.MaximumNArgs(1),
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
	cmd.Flags().StringVarP(&s.file, "file", "f", "", "the config file: what differs from it is shown, and hosts that need a password are reached")
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
	if s.file == "" {
		return d, nil
	}
	if err := a.drift(ctx, s, d); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		d.DriftMessage = err.Error() // all else is worth being shown
	}
	return d, nil
}

// drift compares the hosts, and the cluster, with what the config file declares.
func (a *app) drift(ctx context.Context, s *source, into *description) error {
	c, err := a.load(s)
	if err != nil {
		return err
	}
	from := *s
	if c.Spec.Artifacts.Bundle.Path == "" && c.KubernetesVersion == into.KubernetesVersion {
		from.bundle = into.Bundle // it was made from this one, wherever others lie
	}
	d, err := a.declareCluster(ctx, &from, c)
	if err != nil {
		return err
	}
	if d.Name != into.Name {
		return usage("%s declares the cluster %s, not %s", s.file, d.Name, into.Name)
	}
	trust, err := d.trust(false)
	if err != nil {
		return err
	}
	report, err := planner.Tools{Hosts: d.hosts, Owners: d.owners(), Bundle: d.bundle, Trust: trust}.Compare(ctx, d.targets, d.systems)
	if err != nil {
		return err
	}
	p, err := planner.Plan(d.targets, d.systems, d.bundle)
	if err != nil {
		return err
	}
	return into.drifted(p, report.Checks)
}

// drifted takes in what differs from a plan.
func (d *description) drifted(p *plan.Plan, checks []plan.Check) error {
	for _, c := range checks {
		i, known := p.Graph().Index(c.Node)
		if !known {
			continue
		}
		n := p.Graph().Node(i).Value
		one := difference{Host: n.Host, Step: n.Module + "/" + n.Task + "/" + n.Name, Message: c.Unknown}
		if c.Unknown != "" {
			d.Drift = append(d.Drift, one)
			continue
		}
		said := map[string]bool{}
		for _, delta := range c.Diff {
			one.Resource, one.Found, one.Expected, one.Diff = delta.Subject, delta.From, delta.To, ""
			if !said[delta.Subject] {
				said[delta.Subject], one.Diff = true, c.Lines[delta.Subject]
			}
			d.Drift = append(d.Drift, one)
		}
	}
	var text strings.Builder
	if err := p.Render(&text, checks); err != nil {
		return err
	}
	d.rendered = text.String()
	return nil
}

func (a *app) showDescription(d *description, f *format) error {
	fmt.Fprintf(a.Out, "Name:        %s\n", d.Name)
	fmt.Fprintf(a.Out, "Kubernetes:  %s\n", d.KubernetesVersion)
	fmt.Fprintf(a.Out, "Status:      %s\n", d.Status)
	if d.Message != "" {
		fmt.Fprintf(a.Out, "             %s\n", d.Message)
	}
	fmt.Fprintf(a.Out, "Converged:   %s\n", ago(time.Now(), d.ReadyTime))
	fmt.Fprintf(a.Out, "API server:  %s\n", d.Server)
	fmt.Fprintf(a.Out, "Kubeconfig:  %s\n", d.Kubeconfig)
	fmt.Fprintf(a.Out, "Bundle:      %s\n", d.Bundle)
	fmt.Fprintln(a.Out, "\nHosts:")
	if err := list(a.Out, f, d.Hosts, hostTable()); err != nil {
		return err
	}
	if len(d.Nodes) > 0 {
		fmt.Fprintln(a.Out, "\nNodes:")
		if err := list(a.Out, f, d.Nodes, nodeTable(time.Now())); err != nil {
			return err
		}
	}
	switch {
	case d.DriftMessage != "":
		fmt.Fprintf(a.Out, "\nDrift: not known: %s\n", d.DriftMessage)
	case d.rendered != "":
		fmt.Fprintf(a.Out, "\nDrift:\n%s", d.rendered)
	}
	return nil
}

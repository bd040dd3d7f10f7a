// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
)

func (a *app) plan() *cobra.Command {
	s := &source{}
	var out string
	var all bool
	cmd := &cobra.Command{
		Use:   "plan -f config.yaml [-o plan.json]",
		Short: "Show what would be changed on which host, and save it",
		Long: `Observes all hosts, shows what differs from what the config file declares, and changes nothing.

With -o the plan is written to a file, with secrets as references. "kubexm apply" does exactly what it says.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, p, err := a.showPlan(cmd.Context(), s, all)
			if err != nil || out == "" {
				return err
			}
			if err := d.sameVersion(s.file); err != nil {
				return err
			}
			digest, err := p.Digest()
			if err != nil {
				return err
			}
			if err := d.keep(digest); err != nil {
				return err
			}
			if err := writePlan(p, out); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "Apply exactly this: kubexm apply %s\n", out)
			return nil
		},
	}
	s.addFlags(cmd)
	s.addAdoptFlag(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write the plan to")
	cmd.Flags().BoolVar(&all, "all", false, "show every step of the plan, not only what differs")
	return cmd
}

// showPlan makes the plan of what a config file declares and shows what differs. Nothing is changed.
func (a *app) showPlan(ctx context.Context, s *source, all bool) (*declared, *plan.Plan, error) {
	d, err := a.declare(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := d.sameCluster(); err != nil {
		return nil, nil, err
	}
	if err := d.dir.CheckAuthorities(d.encrypted()); err != nil {
		return nil, nil, err
	}
	tools := planner.Tools{Hosts: d.hosts, Owners: d.owners(), Bundle: d.bundle}
	facts, err := a.examine(ctx, d, tools)
	if err != nil {
		return nil, nil, err
	}
	a.guard(d.dir, tools, false).Warn(ctx, facts)
	p, err := planner.Plan(d.targets, planner.Systems(facts), d.bundle)
	if err != nil {
		return nil, nil, err
	}
	if all {
		return d, p, p.Text(a.Out)
	}
	if tools.Trust, err = d.trust(false); err != nil {
		return nil, nil, err
	}
	report, err := tools.Engine().Check(ctx, p)
	return d, p, a.showFound(p, report, err)
}

// showFound shows what a look has found. Where of some steps it is not known whether they are so, all else is shown, and the look has
// failed nevertheless: a plan is to say what will be changed.
func (a *app) showFound(p *plan.Plan, report engine.Report, err error) error {
	if err != nil && !engine.Undecided(err) {
		return err
	}
	if failed := p.Render(a.Out, report.Checks); failed != nil {
		return failed
	}
	return err
}

// keep keeps what "apply" needs beside the plan: the cluster's key pairs, and how its hosts are reached.
func (d *declared) keep(plan string) error {
	unlock, err := d.dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := d.trust(true); err != nil {
		return err
	}
	return d.keepInventory(plan)
}

// keepInventory keeps, for "apply", how the hosts of a plan are reached.
func (d *declared) keepInventory(plan string) error {
	if err := d.forgetsNone(); err != nil {
		return err
	}
	if err := d.dir.Make(); err != nil {
		return err
	}
	i := d.inventory()
	i.Declared.Plan = plan
	if known, err := d.dir.Inventory(); err != nil {
		return err
	} else if known != nil {
		i.Ready, i.ReadyTime = known.Ready, known.ReadyTime
		i.Recovered, i.Managed = known.Recovered, known.Managed
	}
	return d.dir.WriteInventory(i)
}

func writePlan(p *plan.Plan, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := p.Write(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Close()
}

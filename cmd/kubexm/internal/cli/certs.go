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

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/certs"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// warnDays is how many days before it expires a certificate is spoken of: that is when it is renewed, if nobody says otherwise.
const warnDays = 90

func (a *app) certsCheck() *cobra.Command {
	f, s := newFormat(), &source{}
	warn := warnDays
	cmd := &cobra.Command{
		Use:   "check [CLUSTER] [-f config.yaml]",
		Short: "Show when the certificates on all hosts expire (of the only cluster if none is named)",
		Long: `Reads the certificates on all hosts, those of the cluster's authorities included, and shows when they expire.
Keys are not read, and nothing is changed.

The exit code is 3 if one of them has expired, expires within --warn-days, or cannot be read.`,
		Example: "  kubexm certs check\n  kubexm certs check prod --warn-days 30 -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if warn < 0 {
				return usage("--warn-days: %d is no number of days", warn)
			}
			name, err := a.certsCluster(args, s.file)
			if err != nil {
				return err
			}
			return a.checkCertificates(cmd.Context(), s, f, name, time.Duration(warn)*24*time.Hour)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&s.file, "file", "f", "", "the config file, for hosts that need a password")
	flags.IntVar(&warn, "warn-days", warnDays, "how many days before it expires a certificate is warned of")
	s.addKeyFlags(cmd)
	f.addFlag(cmd)
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}

// certsCluster is the cluster that a command line names, itself or by a config file, or the only one there is.
func (a *app) certsCluster(args []string, file string) (string, error) {
	if len(args) == 0 && file == "" {
		return a.onlyCluster("")
	}
	return clusterName(args, file)
}

func (a *app) checkCertificates(ctx context.Context, s *source, f *format, cluster string, warn time.Duration) error {
	dir, err := clusterdir.Of(a.stateRoot, cluster)
	if err != nil {
		return usageError{err}
	}
	known, hosts, err := a.reach(s, dir)
	if err != nil {
		return err
	}
	var names []string
	for _, h := range known.Hosts {
		names = append(names, h.Name)
	}
	found, unseen := certs.Of(ctx, planner.Tools{Hosts: hosts, Owners: known.owners(dir, nil)}.Engine(), cluster, names, time.Now(), warn)
	if err := a.showCertificates(f, found, warn); err != nil {
		return err
	}
	for _, h := range known.Hosts {
		of := func(c certs.Certificate) bool { return c.Host == h.Name }
		if unseen == nil && h.Role != spec.RoleLoadBalancer && !slices.ContainsFunc(found, of) {
			a.warn(h.Name + " has no certificates: it is not what it must be yet")
		}
	}
	switch {
	case unseen != nil:
		return unseen
	case slices.ContainsFunc(found, func(c certs.Certificate) bool { return c.Status != certs.Good }):
		return exitStatus(exitPreflight)
	}
	return nil
}

// showCertificates lists them, and says of how many somebody has to think.
func (a *app) showCertificates(f *format, found []certs.Certificate, warn time.Duration) error {
	if err := list(a.Out, f, found, certificateTable()); err != nil {
		return err
	}
	counts := map[certs.Status]int{}
	for _, c := range found {
		counts[c.Status]++
	}
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{
		{counts[certs.Expired], "expired"},
		{counts[certs.Ending], fmt.Sprintf("expiring within %d days", int(warn.Hours()/24))},
		{counts[certs.Unreadable], "unreadable"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	if len(parts) > 0 {
		a.warn(fmt.Sprintf("of %s, %s", count(len(found), "certificate"), strings.Join(parts, ", ")))
	}
	return nil
}

func certificateTable() table[certs.Certificate] {
	return table[certs.Certificate]{
		{name: "HOST", value: func(c certs.Certificate) string { return c.Host }},
		{name: "CERTIFICATE", value: func(c certs.Certificate) string { return c.Path }},
		{name: "EXPIRES", value: func(c certs.Certificate) string { return date(c.NotAfter) }},
		{name: "DAYS LEFT", value: daysLeft},
		{name: "STATUS", value: func(c certs.Certificate) string { return string(c.Status) }},
		{name: "SUBJECT", wide: true, value: func(c certs.Certificate) string { return c.Subject }},
		{name: "AUTHORITY", wide: true, value: func(c certs.Certificate) string { return fmt.Sprint(c.Authority) }},
		{name: "MESSAGE", wide: true, value: func(c certs.Certificate) string { return c.Message }},
	}
}

func date(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateOnly)
}

func daysLeft(c certs.Certificate) string {
	if c.Status == certs.Unreadable {
		return "-"
	}
	return fmt.Sprint(c.DaysLeft)
}

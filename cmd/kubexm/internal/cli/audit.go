// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/audit"
)

// auditLog is the record of all commands that change hosts. It is beside the clusters, because "delete cluster" removes a cluster's
// own directory.
func (a *app) auditLog() *audit.Log { return audit.Open(filepath.Join(a.stateRoot, "audit")) }

// audited makes a command that changes hosts leave a record of who ran it and what it came to. Nothing is changed if that cannot
// be written.
func (a *app) audited(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range []string{"dry-run", "plan"} {
			if shows := cmd.Flags().Lookup(name); shows != nil && shows.Value.String() == "true" {
				return run(cmd, args)
			}
		}
		act, err := a.auditLog().Begin(uuid.NewString(), audit.Entry{
			User: userName(), Origin: origin(), Action: strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "), Arguments: a.args,
		}, clock.RealClock{})
		if err != nil {
			return err
		}
		a.act = act
		err = run(cmd, args)
		ended := err
		var status exitStatus
		if cmd.Context().Err() != nil && err != nil {
			ended = fmt.Errorf("interrupted: %w", errors.Join(cmd.Context().Err(), err))
		} else if errors.As(err, &status) && status == exitOK {
			ended = nil
		}
		return errors.Join(err, act.End(ended))
	}
	return cmd
}

// userName is who runs the program, with who that was before sudo.
func userName() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if before := os.Getenv("SUDO_USER"); before != "" && before != name {
		return before + " (as " + name + ")"
	}
	return name
}

func origin() string {
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return fmt.Sprintf("kubexm %d@%s", os.Getpid(), machine)
}

func (a *app) auditList() *cobra.Command {
	f := newFormat()
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List who ran which command on which cluster, and what it came to",
		Long: `Lists the commands that change hosts, the oldest first, from the record in the state directory. Each line of the record has the
digest of the line before: where a line was changed or removed after it was written, the command fails and says which.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			acts, tampered := a.acts()
			return errors.Join(list(a.Out, f, acts, auditTable()), tampered)
		},
	}
	f.addFlag(cmd)
	return cmd
}

func (a *app) auditShow() *cobra.Command {
	f := &format{}
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show all that was recorded of one command",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			acts, tampered := a.acts()
			var found []audit.Summary
			for _, s := range acts {
				if strings.HasPrefix(s.Started.Act, args[0]) {
					found = append(found, s)
				}
			}
			switch len(found) {
			case 0:
				return errors.Join(usage("the record has no command %s; see \"kubexm audit list\"", args[0]), tampered)
			case 1:
				return errors.Join(f.encode(a.Out, found[0]), tampered)
			}
			return usage("%d commands begin with %s: give more of the id", len(found), args[0])
		},
	}
	cmd.Flags().StringVarP(&f.name, "output", "o", "yaml", "json or yaml")
	return cmd
}

func (a *app) acts() ([]audit.Summary, error) {
	entries, err := a.auditLog().Read()
	return audit.Summaries(entries), err
}

func auditTable() table[audit.Summary] {
	return table[audit.Summary]{
		{name: "TIME", value: func(s audit.Summary) string { return s.Started.Timestamp.UTC().Format(time.RFC3339) }},
		{name: "ID", value: func(s audit.Summary) string { return shortID(s.Started.Act) }},
		{name: "USER", value: func(s audit.Summary) string { return s.Started.User }},
		{name: "ACTION", value: func(s audit.Summary) string { return s.Started.Action }},
		{name: "CLUSTER", value: func(s audit.Summary) string { return strings.Join(s.Clusters(), ",") }},
		{name: "HOSTS", value: func(s audit.Summary) string { return fmt.Sprint(len(s.Hosts())) }},
		{name: "CHANGES", value: func(s audit.Summary) string { return fmt.Sprint(s.Changed()) }},
		{name: "OUTCOME", value: func(s audit.Summary) string {
			if outcome := s.Outcome(); outcome != "" {
				return string(outcome)
			}
			return "NotEnded" // killed, or under way
		}},
		{name: "TOOK", value: func(s audit.Summary) string { return seconds(s.Duration()) }},
		{name: "ORIGIN", wide: true, value: func(s audit.Summary) string { return s.Started.Origin }},
		{name: "PLANS", wide: true, value: func(s audit.Summary) string {
			var plans []string
			for _, r := range s.Runs {
				plans = append(plans, shortID(strings.TrimPrefix(r.Plan, "sha256:")))
			}
			slices.Sort(plans)
			return strings.Join(slices.Compact(plans), ",")
		}},
	}
}

// shortID is enough of an id to tell it from others.
func shortID(id string) string { return id[:min(len(id), 8)] }

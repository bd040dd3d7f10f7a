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

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

func (a *app) resetHost() *cobra.Command {
	s := &source{}
	var cluster string
	var yes bool
	cmd := &cobra.Command{
		Use:   "host NAME... --cluster CLUSTER",
		Short: "Reset hosts to their original state",
		Long: `Rolls back on each host all that kubexm changed there, last in first out. The host leaves its cluster without being
drained; use it for hosts that are to be repaired or that failed on the way.

A host that says that it is another's, or another one of this cluster's, is not reset: the refusal says whose it is, and
--adopt HOST=CLUSTER, with that owner's name, resets it all the same.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.reset(cmd.Context(), s, cluster, names, yes)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&s.file, "file", "f", "", "the config file, for hosts that need a password")
	s.addKeyFlags(cmd)
	s.addAdoptFlag(cmd)
	flags.StringVar(&cluster, "cluster", "", "the cluster that the hosts belong to (default the only one there is)")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) reset(ctx context.Context, s *source, cluster string, names []string, yes bool) error {
	began := time.Now()
	cluster, err := a.onlyCluster(cluster)
	if err != nil {
		return err
	}
	dir, known, err := a.known(cluster)
	if err != nil {
		return err
	}
	all := inventory{known}.names()
	for _, name := range names {
		if !slices.Contains(all, name) {
			return usage("cluster %s has no host %s; it has %s", cluster, name, strings.Join(all, ", "))
		}
	}
	if err := s.checkAdopt(names); err != nil {
		return err
	}
	a.warnOfCopy(ctx, s, dir)
	adopted := inventory{known}.wasAdopted(names...)
	if !yes {
		if err := a.confirm(ctx, fmt.Sprintf("%s will be reset to before kubexm, whatever runs there.%s", strings.Join(names, ", "), adopted)); err != nil {
			return err
		}
	} else if adopted != "" {
		a.note(strings.TrimSpace(adopted))
	}
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Somebody was asked, and the lock was free meanwhile.
	if known, err = dir.Inventory(); err != nil {
		return err
	}
	if known == nil {
		return usage("there is no cluster %s in %s any more", cluster, a.stateRoot)
	}
	return a.showing(inventory{known}.about, func(reader event.Reader) (string, error) {
		if err := a.undo(ctx, s, dir, known, names, reader); err != nil {
			return "", err
		}
		known.SetApplied(names, false)
		if err := dir.WriteInventory(known); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s reset in %s.", count(len(names), "host"), seconds(time.Since(began))), nil
	})
}

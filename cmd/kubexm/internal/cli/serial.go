// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/serial"
)

// lookTimeout is how long what protects from an older copy may take where nothing should wait for it: a warning, and the serial that
// an interrupted command leaves.
const lookTimeout = 15 * time.Second

func (s *source) addSerialFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.stateIsCurrent, "state-is-current", false,
		"take the cluster's state here for the truth, though hosts say that they were changed with a newer copy of it; "+
			"other copies are refused from then on")
}

// guard keeps an older copy of the state from changing hosts.
func (a *app) guard(dir clusterdir.Dir, tools planner.Tools, isCurrent bool) *serial.Guard {
	tools.Reader = nil // what it asks is no part of what is shown
	return &serial.Guard{
		Dir: dir, Hosts: serial.Hosts(tools.Owners.Roles), Engine: tools.Engine(), Dial: tools.Hosts.Dial, Owners: tools.Owners.Of,
		Holder: planner.Holder(), By: userName() + ", " + planner.Holder(), IsCurrent: isCurrent, Note: a.warn,
	}
}

// warnOfCopy warns, before a person is asked, that the state is an older copy. What cannot be found out is left out: nothing waits for it.
func (a *app) warnOfCopy(ctx context.Context, s *source, dir clusterdir.Dir) {
	known, hosts, err := a.reach(s, dir)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	a.guard(dir, planner.Tools{Hosts: hosts, Owners: known.owners(dir, s.adopt)}, false).Warn(ctx, nil)
}

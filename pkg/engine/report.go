// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
)

// Report is what a run came to. It is valid, as far as it goes, beside an error too.
type Report struct {
	// Run is the run's id, as in events, locks and journals.
	Run             string
	Intent, Cluster string
	Duration        time.Duration
	// Hosts in the plan's order.
	Hosts []HostReport
	// Controller is what was done through the cluster's API.
	Controller Counts
	// Checks says of each node that differs how, in the plan's order. Only Check fills it.
	Checks []plan.Check
}

// HostReport is what a run came to on one host.
type HostReport struct {
	Host string
	Counts
	// Exchanges is how often the host was talked to, dialling not counted.
	Exchanges int
	// Restored is how many changes were rolled back, by Undo or by policy.
	Restored int
	// Duration from the first dial to the last word.
	Duration time.Duration
	// Facts are the last that were seen; nil when the host was never reached.
	Facts *host.Facts
	// Adopted is who had the host before this run took it over, nil if it did not. Where that was not known it is
	// host.AdoptUnknown.
	Adopted *host.Owner
}

// Counts counts nodes by how they ended. In the report of Check, Changed is how many would run, and Failed of how many that cannot be
// told.
type Counts struct {
	Total, Changed, Skipped, Failed, Blocked int
}

// Total adds up all hosts and the controller.
func (r Report) Total() Counts {
	all := r.Controller
	for _, h := range r.Hosts {
		all.Total += h.Total
		all.Changed += h.Changed
		all.Skipped += h.Skipped
		all.Failed += h.Failed
		all.Blocked += h.Blocked
	}
	return all
}

// Converged reports whether every node was so already.
func (r Report) Converged() bool {
	t := r.Total()
	return t.Skipped == t.Total
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
)

// How much of what differs is shown: an object is not a report. The lengths are those of the API.
const (
	mostDrift     = 16
	longestDetail = 512
	longestDiff   = 4096
)

// driftOf is what a look found to differ on the host itself. Some of it is the host's words.
func driftOf(p *plan.Plan, checks []plan.Check) []bootstrapv1.DriftStatus {
	var all []bootstrapv1.DriftStatus
	for _, c := range checks {
		i, known := p.Graph().Index(c.Node)
		if !known {
			continue
		}
		n := p.Graph().Node(i).Value
		if n.Host == plan.Controller {
			continue
		}
		said := map[string]bool{}
		for _, d := range c.Diff {
			if len(all) == mostDrift {
				return all
			}
			one := bootstrapv1.DriftStatus{
				Step:     host.Word(n.Module+"/"+n.Task+"/"+n.Name, longestDetail),
				Resource: host.Word(d.Subject, longestDetail),
				Found:    host.Word(d.From, longestDetail), Expected: host.Word(d.To, longestDetail),
			}
			if !said[d.Subject] { // what follows is about its mode or owner
				said[d.Subject], one.Diff = true, host.Text(c.Lines[d.Subject], longestDiff)
			}
			all = append(all, one)
		}
	}
	return all
}

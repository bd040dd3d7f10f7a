// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"time"
)

// Summary is one act with all that was recorded of it.
type Summary struct {
	// Started is the entry of its start, Runs are those of its pipelines, and Ended is that of its end, nil if it was killed or is
	// under way.
	Started Entry
	Runs    []Entry
	Ended   *Entry
}

// Summaries are the acts of entries, the oldest first.
func Summaries(entries []Entry) []Summary {
	var all []Summary
	at := map[string]int{}
	for _, e := range entries {
		i, known := at[e.Act]
		if !known {
			i = len(all)
			at[e.Act] = i
			all = append(all, Summary{Started: Entry{Timestamp: e.Timestamp, Act: e.Act}}) // its start may have been rotated away
		}
		switch e.Phase {
		case Started:
			all[i].Started = e
		case Ran:
			all[i].Runs = append(all[i].Runs, e)
		case Ended:
			all[i].Ended = &e
		}
	}
	return all
}

// Clusters are the names of the clusters whose hosts it ran pipelines on, sorted.
func (s *Summary) Clusters() []string {
	var names []string
	for _, r := range s.Runs {
		names = append(names, r.Cluster)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Hosts are the names of the hosts that it ran pipelines on, sorted.
func (s *Summary) Hosts() []string {
	var names []string
	for _, r := range s.Runs {
		names = append(names, r.Hosts...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Changed is how many changes its pipelines made.
func (s *Summary) Changed() int64 {
	var n int64
	for _, r := range s.Runs {
		n += r.Changed
	}
	return n
}

// Outcome is what it came to, "" if it has no end.
func (s *Summary) Outcome() Outcome {
	if s.Ended == nil {
		return ""
	}
	return s.Ended.Outcome
}

// Duration is how long it took, 0 if it has no end.
func (s *Summary) Duration() time.Duration {
	if s.Ended == nil {
		return 0
	}
	return time.Duration(s.Ended.DurationMS) * time.Millisecond
}

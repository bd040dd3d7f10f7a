// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// queryTimeout is the deadline of queries that do not end.
const queryTimeout = 250 * time.Millisecond

// queries are commands that only look, each named after how it ends. What does not end has a deadline; all others have 10 s.
var queries = []host.CommandQuery{
	{ID: "well", Argv: []string{"sh", "-c", "echo so"}},
	{ID: "does not end", Argv: []string{"sh", "-c", "echo begun; exec sleep 4711.5"}, Timeout: queryTimeout},
	{ID: "does not end when it is asked to", Argv: []string{"sh", "-c", "trap '' TERM; echo begun; exec sleep 4711.5"}, Timeout: queryTimeout},
	{ID: "ends with 124", Argv: []string{"sh", "-c", "exit 124"}},
	{ID: "ends by its own deadline", Argv: []string{"timeout", "0.1", "sleep", "4711.5"}},
	{ID: "ends with 137", Argv: []string{"sh", "-c", "exit 137"}},
	{ID: "is killed", Argv: []string{"sh", "-c", "kill -KILL $$"}},
	{ID: "says why", Argv: []string{"sh", "-c", "echo so; echo why >&2; exit 3"}},
}

// testQueries: a check that was stopped at its deadline is distinguished from one that ends with the same exit code by itself, and what it
// says of why it fails is known, in an observation as in what is observed after an act.
func testQueries(r *rig) {
	h := r.dial()
	q := host.Query{Commands: queries}
	check := func(where string, f *host.Facts) {
		r.t.Helper()
		for _, c := range queries {
			got, asked := f.Commands[c.ID]
			switch {
			case !asked:
				r.t.Errorf("%s: nothing of what %s", where, c.ID)
			case c.Timeout == 0 && got.Stopped != 0:
				r.t.Errorf("%s: what %s is said to have been stopped after %s", where, c.ID, got.Stopped)
			case c.Timeout > 0 && (got.Stopped != c.Limit() || string(got.Stdout) != "begun\n"):
				r.t.Errorf("%s: what %s is said to have been stopped after %s, and to have said %q", where, c.ID, got.Stopped, got.Stdout)
			}
		}
		for id, want := range map[string]int{
			"well": 0, "ends with 124": 124, "ends by its own deadline": 124, "ends with 137": 137, "is killed": 137, "says why": 3,
		} {
			if got := f.Commands[id].ExitCode; got != want {
				r.t.Errorf("%s: what %s has the exit code %d, want %d", where, id, got, want)
			}
		}
		if got := f.Commands["says why"]; string(got.Stdout) != "so\n" || string(got.Stderr) != "why\n" {
			r.t.Errorf("%s: what says why is said to have said %q, and why %q", where, got.Stdout, got.Stderr)
		}
	}
	check("an observation", r.observe(h, q))
	s := r.begin(h, newRun())
	act := file(r, "n", "t", "looked-at", "content")
	act.Verify, act.Timeout = q, time.Minute
	check("after an act", r.do(s, act))
	r.undo(s, host.Scope{})
	r.end(s)

	bad := host.Query{Commands: []host.CommandQuery{{ID: "x", Argv: []string{"true"}, Timeout: -time.Second}}}
	if _, err := h.Observe(r.ctx, bad); host.KindOf(err) != host.KindInvalid {
		r.t.Errorf("a negative timeout: %v", err)
	}
}

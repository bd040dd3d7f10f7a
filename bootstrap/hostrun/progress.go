// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"fmt"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Progress is how far a run on one host is.
type Progress struct {
	// Done of Total nodes of the host are as planned. Total is 0 until the host has answered.
	Done, Total int32
	// Lost is why the host could not be reached at the last attempt, "" once it answers, and Why of which kind that is.
	Lost string
	Why  host.Kind
	// Now says what is being done or waited for: the task and step, and what is missing.
	Now string
}

// Read takes in an event.
func (p *Progress) Read(ev event.Event) { p.read(ev) }

// read takes in an event, and reports whether it made a difference to a person.
func (p *Progress) read(ev event.Event) bool {
	before := *p
	switch ev.Type {
	case event.HostObserved:
		p.answers(ev)
		p.Done, p.Total = int32(ev.Done), int32(ev.Total)
	case event.Started:
		p.Now = place(ev)
	case event.Waiting:
		p.Now = fmt.Sprintf("%s: waiting: %s", place(ev), ev.Message)
	case event.Retrying:
		p.Now = fmt.Sprintf("%s: attempt %d of %d failed: %v; again in %s", place(ev), ev.Attempt, ev.Attempts, ev.Err, ev.Delay)
		if kind := host.KindOf(ev.Err); ev.Host != "" && (kind == host.KindUnreachable || kind == host.KindNoAnswer) {
			p.Why = kind
			p.Lost = fmt.Sprintf("attempt %d of %d failed: %v; again in %s", ev.Attempt, ev.Attempts, ev.Err, ev.Delay.Round(time.Second))
		}
	case event.Skipped:
		p.answers(ev)
	case event.Changed:
		p.answers(ev)
		// What was so already is counted by HostObserved; what is found to be so later is not told apart from it.
		if ev.Host != "" {
			p.Done = min(p.Done+1, p.Total)
		}
	case event.Undone:
		p.answers(ev)
		p.Done++
	}
	return *p != before
}

// answers notes that an event is of something that the host has answered.
func (p *Progress) answers(ev event.Event) {
	if ev.Host != "" {
		p.Lost, p.Why = "", ""
	}
}

func place(ev event.Event) string {
	if ev.Step == "" {
		return ev.Place()
	}
	return ev.Task + " " + ev.Step
}

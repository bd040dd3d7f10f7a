// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"slices"
	"time"
)

const (
	// patience is how long a host has to shut down in order before it is asked to hurry: longer than systemd gives a unit to stop.
	patience = 2 * time.Minute
	// booting is how long a machine that was reset has until it is reset once more: servers take minutes to their own checks.
	booting = 10 * time.Minute
	// anew is when a reset is tried again that was refused.
	anew = 30 * time.Second
)

// state is how far a reboot is.
type state int

const (
	waiting state = iota // nothing was asked of the host yet
	asked                // it was asked to reboot in order
	forced               // it was asked to reboot without waiting for units to stop
	reset                // its machine was reset by its management controller
)

// sight is what is seen of a host that has not booted yet.
type sight int

const (
	whatever sight = iota // whatever is seen
	silent                // it does not answer
	answers               // it answers
	refuses               // it answers, and systemctl failed when it was asked last
)

// transition is what is done when a host in a state has been seen so for so long, and the state that it is in then.
type transition struct {
	from state
	seen sight
	// least is how long: a host is silent since it was last heard or asked, answers since it was last asked, and is anything since it
	// came into the state.
	least time.Duration
	act   act
	to    state
}

// transitions are all of them. The first that applies is made; where none does, the host is observed again later. A reset needs a
// management controller, and is not made while a machine may still boot that was reset before, nor soon after one that was refused.
var transitions = []transition{
	{waiting, answers, 0, (*Reboot).ask, asked},
	{waiting, silent, patience, (*Reboot).reset, reset},
	{asked, refuses, 0, (*Reboot).force, forced},
	{asked, answers, patience, (*Reboot).force, forced},
	{asked, silent, patience, (*Reboot).reset, reset},
	{forced, whatever, patience, (*Reboot).reset, reset},
	{forced, refuses, 0, (*Reboot).force, forced},
	{forced, answers, patience, (*Reboot).force, forced},
	{reset, answers, patience, (*Reboot).force, forced},
	{reset, silent, patience, (*Reboot).reset, reset},
}

// progress is where a reboot is, and since when.
type progress struct {
	state state
	// entered is when it came into its state, and first when anything was first done; acted is when the host was asked last, or its
	// machine reset, and heard when the host answered last, or was first asked whether it does.
	entered, first, acted, heard time.Time
	// refused is whether the host refused to reboot when it was asked last.
	refused bool
	// last is the machine's last reset that was not refused, tried when one was tried last; refusal is why that one was refused, or its
	// outcome is not known.
	last, tried time.Time
	refusal     error
	// admitted is whether the host was found to be one that may be rebooted.
	admitted bool
}

// resumed is where a reboot is that is begun now, or gone on with: known is what is recorded of resets.
func resumed(since, now time.Time, known Reset) *progress {
	p := &progress{heard: now}
	switch {
	case !known.Time.After(since): // of an earlier reboot, or of none
	case known.Refused:
		p.tried = known.Time
	default:
		p.enter(reset, known.Time)
		p.last, p.tried = known.Time, known.Time
	}
	return p
}

func (p *progress) enter(s state, now time.Time) {
	if s != p.state || s == reset {
		p.entered = now
	}
	if p.first.IsZero() {
		p.first = now
	}
	p.state, p.acted = s, now
}

// next is the transition to be made now, nil if there is none.
func (p *progress) next(seen sight, now time.Time, controlled bool) *transition {
	for i := range transitions {
		t := &transitions[i]
		matches := t.from == p.state && (t.seen == seen || t.seen == whatever || t.seen == answers && seen == refuses)
		if matches && now.Sub(p.since(t.seen)) >= t.least && (t.to != reset || controlled && p.mayReset(now)) {
			return t
		}
	}
	return nil
}

func (p *progress) since(seen sight) time.Time {
	switch seen {
	case whatever:
		return p.entered
	case silent:
		return slices.MaxFunc([]time.Time{p.heard, p.acted}, time.Time.Compare)
	}
	return p.acted
}

func (p *progress) mayReset(now time.Time) bool {
	return now.Sub(p.last) >= booting && now.Sub(p.tried) >= anew
}

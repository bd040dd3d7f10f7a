// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress shows a person how runs go: a bar per host on a terminal, lines otherwise.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// Mode says how much is shown and in what way.
type Mode int

const (
	// Lines writes what matters line by line, of one host not more than a line per Every beside failures.
	Lines Mode = iota
	// Bars draws a bar per host, in place. It is for terminals.
	Bars
	// Quiet writes failures alone.
	Quiet
)

// Options of New.
type Options struct {
	Mode Mode
	// About says what a host is ("control plane"), to stand beside its name. May be nil.
	About func(host string) string
	// Every is the shortest time between two lines about one host; 0 means 2 s.
	Every time.Duration
	// Clock is replaced by tests.
	Clock clock.PassiveClock
}

// Progress is the reader. It may be given to several engines at once, one after the other, and see the same host several
// times: each run starts the host's count anew.
type Progress struct {
	o    Options
	mu   sync.Mutex
	show display
	// places by name, "" for the controller.
	places map[string]*place
}

// place is how far a host is.
type place struct {
	name, about string
	run         string // the run that was seen last
	done, total int64
	now         string // what is going on, or how it ended
	started     time.Time
	told        time.Time
	failed      bool
}

// count is "44/63", or nothing before the host was observed.
func (p *place) count() string {
	if p.total == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.done, p.total)
}

// display is what Lines, Bars and Quiet differ in.
type display interface {
	// update is notified of every event; p is nil for those of the run itself.
	update(p *place, e event.Event)
	close()
}

// New returns a reader that writes to w. Close must be called when no more is to be shown.
func New(w io.Writer, o Options) *Progress {
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.About == nil {
		o.About = func(string) string { return "" }
	}
	p := &Progress{o: o, places: make(map[string]*place)}
	switch o.Mode {
	case Bars:
		p.show = newBars(w)
	case Quiet:
		p.show = &lines{w: w, quiet: true}
	case Lines:
		p.show = &lines{w: w, every: o.Every, now: o.Clock.Now}
	}
	return p
}

// Read shows e.
func (p *Progress) Read(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Host == "" && e.Step == "" {
		p.show.update(nil, e)
		return
	}
	at := p.place(e)
	at.note(e)
	p.show.update(at, e)
}

// Close draws what is left to be drawn.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show.close()
}

func (p *Progress) place(e event.Event) *place {
	at, ok := p.places[e.Host]
	if !ok {
		at = &place{name: e.Host, about: p.o.About(e.Host)}
		if e.Host == "" {
			at.name = "controller"
		}
		p.places[e.Host] = at
	}
	if at.run != e.Pipeline {
		at.run, at.done, at.total, at.now, at.failed, at.started = e.Pipeline, 0, 0, "", false, e.Time
	}
	return at
}

// note takes e into the state of its place.
func (p *place) note(e event.Event) {
	switch e.Type {
	case event.HostObserved:
		p.total, p.now = e.Total, "observed"
	case event.Started:
		p.now = e.Step
		if e.Attempts > 1 && e.Attempt > 1 {
			p.now = fmt.Sprintf("%s, attempt %d of %d", e.Step, e.Attempt, e.Attempts)
		}
	case event.Progress:
		if e.Total > 0 {
			p.now = fmt.Sprintf("%s %d %%", e.Step, 100*e.Done/e.Total)
		}
	case event.Waiting:
		p.now = "waiting: " + e.Message
	case event.Retrying:
		p.now = fmt.Sprintf("again in %s: %s", e.Delay.Round(100*time.Millisecond), e.Message)
	case event.Skipped, event.Changed:
		p.done++
		if p.done == p.total {
			p.now = "done in " + e.Time.Sub(p.started).Round(100*time.Millisecond).String()
		}
	case event.Failed:
		p.failed, p.now = true, "failed: "+e.Message
		if e.Step != "" {
			p.now = fmt.Sprintf("%s failed: %s", e.Step, e.Message)
		}
	case event.Undone:
		p.done, p.total, p.now = e.Done, max(e.Total, e.Done), "restored "+e.Message
	case event.Blocked:
		if !p.failed {
			p.now = e.Message
		}
	case event.RunStarted, event.RunEnded:
	}
}

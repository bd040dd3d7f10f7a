// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"sync"
	"time"
)

// Phase is what is being done with a component. Builds have phases of their own beside these (compiling, fetching modules …).
type Phase string

// The phases that are not a build's own.
const (
	PhaseWaiting     Phase = "waiting"     // another process makes it
	PhaseDownloading Phase = "downloading" // N of M are bytes
	PhaseAssembling  Phase = "assembling"  // an image
	PhaseWriting     Phase = "writing"     // the bundle; N of M are bytes
	PhaseCached      Phase = "cached"      // it was there already
	PhaseDone        Phase = "done"
)

// Event says how far the making of a bundle is.
type Event struct {
	// Component and Arch are empty for PhaseWriting, Arch is for a chart.
	Component, Version, Arch string
	Phase                    Phase
	// N of M units of the phase are done. M is 0 while it is not known.
	N, M int64
	// Finished of Total components and images are done or were cached.
	Finished, Total int
	// Elapsed is set on PhaseDone.
	Elapsed time.Duration
}

// progress counts what is finished and passes events on, one at a time.
type progress struct {
	mu       sync.Mutex
	report   func(Event)
	finished int
	total    int
}

func (p *progress) send(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Phase == PhaseDone || e.Phase == PhaseCached {
		p.finished++
	}
	e.Finished, e.Total = p.finished, p.total
	if p.report != nil {
		p.report(e)
	}
}

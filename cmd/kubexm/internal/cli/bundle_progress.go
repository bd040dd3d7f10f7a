// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

// silence is for how long the making of a bundle says nothing at most: large components compile for minutes.
const silence = 10 * time.Second

// making shows how a bundle is made: the beginning of each phase of each component, their ends, and in between what is under way.
type making struct {
	started time.Time
	note    func(line string)

	mu sync.Mutex
	// underWay are the components that are neither waiting to begin nor done, by name.
	underWay map[string]artifact.Event
	last     artifact.Event
	noted    time.Time
}

func newMaking(started time.Time, note func(string)) *making {
	return &making{started: started, note: note, underWay: map[string]artifact.Event{}, noted: started}
}

// event shows that a phase has begun or that a component is done.
func (m *making) event(e artifact.Event, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := strings.TrimSpace(e.Component + " " + e.Version + " " + e.Arch)
	before, known := m.underWay[name]
	m.last = e
	if e.Phase == artifact.PhaseDone || e.Phase == artifact.PhaseCached {
		delete(m.underWay, name)
	} else {
		m.underWay[name] = e
	}
	if known && before.Phase == e.Phase {
		return
	}
	text := fmt.Sprintf("%-34s %s", name, e.Phase)
	if e.Elapsed > 0 {
		text += " in " + seconds(e.Elapsed)
	}
	m.line(text, now)
}

// beat shows what is under way if nothing was shown for long.
func (m *making) beat(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.noted) < silence || len(m.underWay) == 0 {
		return
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m.underWay)) {
		e := m.underWay[name]
		part := name + " " + string(e.Phase)
		if e.M > 1 {
			part += fmt.Sprintf(" %d %%", 100*e.N/e.M)
		}
		parts = append(parts, part)
	}
	m.line(strings.Join(parts, ", "), now)
}

func (m *making) line(text string, now time.Time) {
	m.noted = now
	m.note(fmt.Sprintf("%7s  %2d/%d  %s", seconds(now.Sub(m.started)), m.last.Finished, m.last.Total, text))
}

// watch has what is under way shown until stop is called, which waits for that.
func (m *making) watch() (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				m.beat(now)
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}

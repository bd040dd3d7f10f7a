// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// lines writes a line for what matters.
type lines struct {
	w     io.Writer
	quiet bool
	every time.Duration
	now   func() time.Time
}

func (l *lines) update(p *place, e event.Event) {
	if p == nil {
		l.run(e)
		return
	}
	if e.Type != event.Failed && (l.quiet || p.now == "" || !l.worth(p, e)) {
		return
	}
	l.write(e.Time, p.name, p.count(), p.now)
}

// worth reports whether e is worth a line: the ends always, the way there at times.
func (l *lines) worth(p *place, e event.Event) bool {
	switch e.Type {
	case event.Skipped, event.Changed:
		if p.done == p.total {
			return true
		}
	case event.Retrying, event.HostObserved:
		return true
	case event.Blocked, event.Failed, event.RunStarted, event.RunEnded:
		return false
	case event.Started, event.Progress, event.Waiting, event.Undone:
	}
	now := l.now()
	if now.Sub(p.told) < l.every {
		return false
	}
	p.told = now
	return true
}

func (l *lines) run(e event.Event) {
	if l.quiet || e.Type != event.RunEnded {
		return
	}
	l.write(e.Time, e.Intent, "", fmt.Sprintf("%s (%s)", e.Message, e.Duration.Round(100*time.Millisecond)))
}

func (l *lines) write(at time.Time, name, count, text string) {
	// A terminal or file that cannot be written to is no reason to stop a run.
	_, _ = fmt.Fprintf(l.w, "%s  %-16s %7s  %s\n", at.Format(time.TimeOnly), name, count, text)
}

func (l *lines) close() {}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// Act records one act. As an event.Reader it records each pipeline that ends.
type Act struct {
	log   *Log
	clock clock.PassiveClock
	id    string
	began time.Time

	mu  sync.Mutex
	err error
}

// Begin records that an act starts. of has its User, Origin, Action and Arguments; id names it. An act that cannot be recorded must
// not begin: the error says why.
func (l *Log) Begin(id string, of Entry, c clock.PassiveClock) (*Act, error) {
	a := &Act{log: l, clock: c, id: id, began: c.Now()}
	of.Timestamp, of.Phase, of.Act = a.began, Started, id
	return a, l.Append(of)
}

// Read records e if it ends a pipeline that may change hosts.
func (a *Act) Read(e event.Event) {
	if e.Type != event.RunEnded || e.Intent == "Check" {
		return
	}
	a.record(Entry{
		Timestamp: e.Time, Phase: Ran, Cluster: e.Cluster, Pipeline: e.Intent, PipelineID: e.Pipeline, Plan: e.Plan, Hosts: e.Hosts,
		Changed: e.Done, Outcome: outcomeOf(e.Err), DurationMS: e.Duration.Milliseconds(), Message: messageOf(e.Err),
	})
}

// End records what the act came to, err being nil if it succeeded, and returns the first entry's error that could not be written.
func (a *Act) End(err error) error {
	now := a.clock.Now()
	a.record(Entry{
		Timestamp: now, Phase: Ended, Outcome: outcomeOf(err), DurationMS: now.Sub(a.began).Milliseconds(), Message: messageOf(err),
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *Act) record(e Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.Act = a.id
	if err := a.log.Append(e); err != nil && a.err == nil {
		a.err = err
	}
}

func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Succeeded
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Failed
}

// messageOf is why something failed, in at most so many bytes.
func messageOf(err error) string {
	const most = 4096
	if err == nil {
		return ""
	}
	text := strings.TrimSpace(err.Error())
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

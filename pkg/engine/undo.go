// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Undo says what is to be undone: all that Scope names on Hosts. The zero Scope resets the hosts to what they were
// before we first changed them.
type Undo struct {
	// Intent and Cluster are for events: "ResetNode", "DeleteCluster".
	Intent, Cluster string
	Hosts           []string
	Scope           host.Scope
}

// Undo resets hosts, as many at once as the options allow. A host that we never changed, or that was reset
// already, is left alone after one look. What could not be undone stays recorded on the host, so Undo can be called
// again. A host of another owner is not reset. The error is an *Error with a failure per host.
func (e *Engine) Undo(ctx context.Context, u Undo) (Report, error) {
	w := e.worker(u.Intent, u.Cluster, e.o.Reader)
	start := w.o.Clock.Now()
	w.tell(event.Event{Type: event.RunStarted, Hosts: u.Hosts, Message: u.Intent})
	var mu sync.Mutex
	reports := make(map[string]HostReport, len(u.Hosts))
	failures := w.each(ctx, u.Hosts, func(ctx context.Context, name string) outcome {
		began := w.o.Clock.Now()
		m := &hostState{worker: w, name: name}
		defer m.leave(ctx, true)
		restored, out := m.restore(ctx, u.Scope)
		mu.Lock()
		defer mu.Unlock()
		reports[name] = HostReport{
			Host: name, Restored: restored, Exchanges: int(m.exchanges.Load()), Facts: m.facts,
			Duration: w.o.Clock.Since(began), Adopted: m.adopted(),
		}
		return out
	})
	r := Report{Run: w.id, Intent: u.Intent, Cluster: u.Cluster}
	restored := 0
	for _, name := range u.Hosts {
		r.Hosts = append(r.Hosts, reports[name])
		restored += reports[name].Restored
	}
	r.Duration = w.o.Clock.Since(start)
	err := w.errorOf(ctx, failures)
	w.tell(event.Event{
		Type: event.RunEnded, Hosts: u.Hosts, Duration: r.Duration, Done: int64(restored), Total: int64(restored), Err: err,
		Message: restoredMessage(restored, len(u.Hosts)),
	})
	return r, err
}

// restore looks whether there is anything to be undone, and does so.
func (m *hostState) restore(ctx context.Context, scope host.Scope) (restored int, out outcome) {
	out = m.contact(ctx, host.Query{Paths: []host.PathQuery{{Path: host.StateDir}}}, m.o.Redial)
	if out.err != nil {
		return 0, out
	}
	m.tell(event.Event{
		Type: event.HostObserved, Host: m.name, Duration: out.duration, Total: int64(m.facts.UndoEntries),
	})
	if m.facts.UndoEntries == 0 && !m.facts.Paths[host.StateDir].Exists {
		return 0, out
	}
	restored, out.err = m.undo(ctx, scope, m.o.Redial)
	return restored, out
}

func restoredMessage(restored, hosts int) string {
	if restored == 0 {
		return "nothing to roll back"
	}
	return fmt.Sprintf("%s rolled back on %s", plural(restored, "change"), plural(hosts, "host"))
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand/v2"
	"time"

	"k8s.io/utils/clock"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Policy says what happens to what was changed already when a node fails.
type Policy string

const (
	// Stop leaves what is done: the next run starts from there. Other hosts go on. It is the default.
	Stop Policy = "Stop"
	// UndoTask rolls back what this run changed for the failed node's task on its host, last in first out. Other hosts go on.
	UndoTask Policy = "UndoTask"
	// UndoRun starts nothing more anywhere and rolls back all that this run changed, on every host. Every host's lock is held
	// until the run ends.
	UndoRun Policy = "UndoRun"
)

// Options are what an Engine works with. Dial is required by plans that have hosts, Cluster by those that have steps on
// the controller.
type Options struct {
	// Dial connects to the host that a plan calls by this name. The engine closes what it returns.
	Dial func(ctx context.Context, name string) (host.Host, error)
	// Ownership says for whom a host is changed. It is asked once per host and run, before the host is dialled; its error
	// is the host's. Whatever observes a host compares it with the host's own record before anything is decided, and every
	// session does so before anything is changed: on somebody else's host the error is of host.KindForeign. If nil, hosts
	// are changed for nobody, and those that have an owner are refused.
	Ownership func(ctx context.Context, name string) (host.Ownership, error)
	// Secrets resolves references to secrets. It is asked once per reference and run.
	Secrets func(ref step.SecretRef) ([]byte, error)
	// Artifacts opens what steps send.
	Artifacts step.Artifacts
	// Cluster connects to the cluster's API for steps on the controller. It is asked until it succeeds once in a run, and again while
	// the API does not answer or a step waits, every 30 seconds: the way to it may be another by then.
	Cluster func(ctx context.Context) (step.Cluster, error)

	// HostsAtOnce is how many hosts are worked on at once; 0 means 50.
	HostsAtOnce int
	// Slots are shared with other engines whose hosts count for the same limits of steps; the zero value are slots of this one.
	Slots Slots
	// TurnRenewal is how often the cluster is notified of a turn that a host has (step.Savepoint.Turn); 0 means 30 seconds.
	TurnRenewal time.Duration
	// Also is asked of every host in a run or a check, in the exchanges in which its steps are judged: the facts of the report
	// (HostReport.Facts) have the answers, as they were after the last change. It costs no exchange of its own.
	Also host.Query
	// Policy on failure; "" means Stop.
	Policy Policy
	// Redial bounds how often and after what delay a host is dialled when it cannot be reached or its connection was lost,
	// per node, and how often a step on the controller is tried again when the API server did not answer. The zero value means 6 attempts
	// over about a minute (2 s, doubled up to 30 s).
	Redial step.Retry

	// ObserveTimeout bounds each observation of a host, the first included; 0 means 2 minutes. A host that is reached and does not
	// answer in that time is one that hangs: its connection is given up and the error is host.KindNoAnswer.
	ObserveTimeout time.Duration
	// UndoEntryTimeout bounds the restoring of one entry of a host's undo store, 0 means 10 minutes (the removal of packages takes the
	// longest), and UndoTimeout that of all, 0 means an hour, with the wait for the host's lock.
	UndoEntryTimeout, UndoTimeout time.Duration

	// Holder names this process to anyone who finds a host locked, e.g. "kubexm 4711@laptop".
	Holder string
	// Address returns a host's address for messages, or "". May be nil.
	Address func(name string) string
	// Reader is notified of everything that happens, in order. May be nil.
	Reader event.Reader

	// Clock, Jitter and NewID are replaced by tests. Jitter spreads a delay; by default by a quarter to either side. NewID
	// makes the ids of runs: the time and 32 random bits.
	Clock  clock.Clock
	Jitter func(time.Duration) time.Duration
	NewID  func() string
}

func (o Options) withDefaults() Options {
	if o.HostsAtOnce <= 0 {
		o.HostsAtOnce = 50
	}
	if o.Slots.slots == nil {
		o.Slots = NewSlots()
	}
	if o.Policy == "" {
		o.Policy = Stop
	}
	if o.Redial == (step.Retry{}) {
		o.Redial = step.Retry{Attempts: 6, Delay: step.Duration(2 * time.Second), MaxDelay: step.Duration(30 * time.Second)}
	}
	if o.TurnRenewal == 0 {
		o.TurnRenewal = 30 * time.Second
	}
	if o.ObserveTimeout == 0 {
		o.ObserveTimeout = 2 * time.Minute
	}
	if o.UndoEntryTimeout == 0 {
		o.UndoEntryTimeout = 10 * time.Minute
	}
	if o.UndoTimeout == 0 {
		o.UndoTimeout = time.Hour
	}
	if o.Ownership == nil {
		o.Ownership = func(context.Context, string) (host.Ownership, error) { return host.Ownership{}, nil }
	}
	if o.Address == nil {
		o.Address = func(string) string { return "" }
	}
	if o.Reader == nil {
		o.Reader = event.ReaderFunc(func(event.Event) {})
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Jitter == nil {
		o.Jitter = func(d time.Duration) time.Duration {
			return time.Duration(float64(d) * (0.75 + 0.5*mathrand.Float64()))
		}
	}
	if o.NewID == nil {
		now := o.Clock.Now
		o.NewID = func() string {
			var b [4]byte
			_, _ = rand.Read(b[:]) // never fails: see crypto/rand
			return now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
		}
	}
	return o
}

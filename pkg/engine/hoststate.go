// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// hostState is a host while a run works on it: its connection, what is known of it and what that means for each of its
// nodes. It belongs to one goroutine at a time.
type hostState struct {
	*worker
	name  string
	nodes []plan.Node

	conn    host.Host
	session host.Session
	began   bool            // a session was begun, so there may be changes of this run
	claim   *host.Ownership // nil until it was asked for
	// from is whose host it is that this run adopts, nil if it adopts none.
	from  *host.Owner
	facts *host.Facts
	found []finding // by position
	// fresh: the positions below it were judged from facts that are newer than this run's last change.
	fresh int
	// begun: of the nodes at the positions below it, it was told that their first attempt begins.
	begun int
	// ahead says that content is sent ahead in this session.
	ahead bool
	// did is what came of nodes that shared an exchange, by position. failed is how that ended, if it did so with the first attempt at the
	// node at failedAt.
	did       map[int]outcome
	failed    error
	failedAt  int
	exchanges atomic.Int64
	// stood are the nodes with something that has no way back which an earlier run has done; see scheduler.stays.
	stood []string
}

// finding is what Precheck said.
type finding struct {
	diff step.Diff
	err  error
}

func (f finding) done() bool { return f.err == nil && len(f.diff) == 0 }

// undecided reports whether the host was observed and it is not known all the same. Nothing is run for that.
func (f finding) undecided() bool { return host.KindOf(f.err) == host.KindUndecided }

// contact dials the host, observes it for the first time, and judges its nodes, if it has any, all from that one exchange.
func (m *hostState) contact(ctx context.Context, q host.Query, redial step.Retry) outcome {
	start := m.o.Clock.Now()
	out := m.persist(ctx, event.Event{Host: m.name}, redial, func() error {
		start = m.o.Clock.Now()
		return m.see(ctx, q)
	})
	if out.err == nil {
		m.found = make([]finding, len(m.nodes))
		m.remember()
		m.judge(0, len(m.nodes))
		m.fresh = len(m.nodes)
		if out.err = m.refusal(); out.err != nil {
			out.attempts = out.attempt // it would be refused again
		}
	}
	out.duration = m.o.Clock.Since(start)
	return out
}

// remember notes which steps with something that has no way back an earlier run has done.
func (m *hostState) remember() {
	for _, n := range m.nodes {
		if _, done := m.facts.Journal[n.ID]; done && n.Meta().Stays != "" {
			m.stood = append(m.stood, n.ID)
		}
	}
}

// see observes q, over a new connection if there is none.
func (m *hostState) see(ctx context.Context, q host.Query) error {
	if err := m.dial(ctx); err != nil {
		return err
	}
	seen, err := m.observe(ctx, q)
	if err != nil {
		return err
	}
	if err := m.admit(seen); err != nil {
		return err
	}
	m.learn(q, seen)
	return nil
}

// admit compares the host's owner with whom it is changed for. Of a host that is taken over from another cluster, nothing counts
// as finished.
func (m *hostState) admit(seen *host.Facts) error {
	if err := m.claim.Check(m.name, seen); err != nil {
		// Which machine it is, is all that may be known of it: nothing is decided from it.
		m.facts = &host.Facts{Taken: seen.Taken, System: seen.System, Owner: seen.Owner, OwnerUnreadable: seen.OwnerUnreadable}
		return err
	}
	if !m.claim.Adopts(seen) {
		return nil
	}
	m.from = cmp.Or(m.from, seen.Owner, &host.Owner{Cluster: host.AdoptUnknown})
	if seen.Owner != nil && seen.Owner.Authority != m.claim.Owner.Authority {
		seen.Journal = nil
	}
	return nil
}

// dial connects, and takes the lock again where this run had it.
func (m *hostState) dial(ctx context.Context) error {
	if m.claim == nil {
		claim, err := m.o.Ownership(ctx, m.name)
		if err != nil {
			return err
		}
		m.claim = &claim
	}
	if m.conn == nil {
		if m.o.Dial == nil {
			return errors.New("no way to reach hosts is configured")
		}
		c, err := m.o.Dial(ctx, m.name)
		if err != nil {
			return err
		}
		m.conn = counted{c, &m.exchanges}
	}
	if m.began {
		return m.begin(ctx)
	}
	return nil
}

// begin takes the lock, unless this run has it.
func (m *hostState) begin(ctx context.Context) error {
	if m.session != nil {
		return nil
	}
	var s host.Session
	if err := m.inTime(ctx, "the taking of its lock", m.o.UndoTimeout, func(ctx context.Context, _ func()) (err error) {
		s, err = m.conn.Begin(ctx, host.Run{ID: m.id, Holder: m.o.Holder, Ownership: *m.claim})
		return err
	}); err != nil {
		return err
	}
	m.session, m.began, m.ahead = s, true, false
	return nil
}

// adopted is who had the host before this run took it over, nil if it did not.
func (m *hostState) adopted() *host.Owner {
	if !m.began {
		return nil
	}
	return m.from
}

// drop gives up a connection that is of no more use.
func (m *hostState) drop() {
	if m.conn != nil {
		_ = m.conn.Close() // nothing can be done about it
	}
	m.conn, m.session = nil, nil
}

// persist repeats f while the host cannot be reached.
func (m *hostState) persist(ctx context.Context, where event.Event, redial step.Retry, f func() error) outcome {
	out := outcome{attempt: 1, attempts: max(1, redial.Attempts)}
	for ; ; out.attempt++ {
		out.err = guard(f)
		if out.err != nil {
			m.drop()
		}
		if out.err != nil && !m.lost(out.err, out.attempt > 1) {
			out.attempts = out.attempt // there will be none after this
		}
		if out.err == nil || ctx.Err() != nil || out.attempt == out.attempts {
			return out
		}
		if !m.again(ctx, where, out, m.delay(redial, out.attempt)) {
			return out
		}
	}
}

// lost reports whether the host could not be reached, or not any more. After a cut the lock may be held for a while by
// what the old connection left behind.
func (m *hostState) lost(err error, before bool) bool {
	k := host.KindOf(err)
	return k == host.KindUnreachable || k == host.KindLocked && before
}

// again tells of the retry and waits for its time.
func (w *worker) again(ctx context.Context, where event.Event, out outcome, delay time.Duration) bool {
	where.Type, where.Err, where.Delay = event.Retrying, out.err, delay
	where.Attempt, where.Attempts = out.attempt, out.attempts
	w.tell(where)
	return w.sleep(ctx, delay)
}

// learn takes over what was seen. Answers that are given by having no entry are made so.
func (m *hostState) learn(asked host.Query, seen *host.Facts) {
	if m.facts == nil {
		m.facts = &host.Facts{}
	}
	for _, p := range asked.Paths {
		if p.Block != "" {
			delete(m.facts.Blocks, p.Path+"#"+p.Block)
		}
	}
	for _, p := range asked.Ports {
		delete(m.facts.Ports, p)
	}
	m.facts.Update(seen)
}

// view is what the node at a position is decided from.
func (m *hostState) view(at int) step.View {
	return step.View{Facts: m.facts, Values: m.values, Node: m.nodes[at].ID, Digest: m.nodes[at].Digest}
}

// judge decides the positions from at up to, not including, end.
func (m *hostState) judge(at, end int) {
	for ; at < end; at++ {
		f := finding{}
		f.err = guard(func() (err error) {
			f.diff, err = m.nodes[at].Step.Precheck(m.view(at))
			return err
		})
		var u *step.Undecided
		if errors.As(f.err, &u) {
			f.err = &host.Error{Kind: host.KindUndecided, Host: m.name, Message: f.err.Error(), Remedy: u.Remedy()}
		}
		m.found[at] = f
	}
}

// refusal is why nothing may be done on the host, though only a later node says so.
func (m *hostState) refusal() error {
	for _, f := range m.found {
		if host.KindOf(f.err) == host.KindOtherAuthority {
			return f.err
		}
	}
	return nil
}

// bound is one more than the position of the next node after at that is not so, and of those that may share its exchange, or the
// number of nodes.
func (m *hostState) bound(at int) int {
	for at++; at < len(m.nodes); at++ {
		if !m.found[at].done() {
			return m.sharing(at)
		}
	}
	return at
}

// query merges what the positions from at up to, not including, end want to know, and Options.Also when it is the last that is asked
// of the host, as far as can be told: what comes after another change is asked again with that.
func (m *hostState) query(at, end int) host.Query {
	var q host.Query
	for _, n := range m.nodes[at:end] {
		q.Merge(n.Step.Observe())
	}
	if end == len(m.nodes) {
		q.Merge(m.o.Also)
	}
	return q
}

// look judges the node at a position, and those up to the next that is not so, from fresh facts.
func (m *hostState) look(ctx context.Context, at int) error {
	end := m.bound(at)
	if err := m.see(ctx, m.query(at, end)); err != nil {
		return err
	}
	m.judge(at, end)
	m.fresh = end
	return nil
}

// act brings the node at a position about: attempts until one succeeds.
func (m *hostState) act(ctx context.Context, at int) outcome {
	n := m.nodes[at]
	meta := n.Meta()
	start := m.o.Clock.Now()
	out := outcome{attempt: 1, attempts: max(1, meta.Retry.Attempts)}
	m.judge(at, at+1) // what it takes may be there now
	if m.found[at].done() {
		m.values.publish(meta.Makes, nil)
		return out
	}
	out.changed, out.what = true, summary(m.found[at].diff)
	for lost := 0; ; {
		if out.attempt > 1 || lost > 0 {
			m.begun = at
		}
		m.begins(at, out)
		if m.failed != nil && m.failedAt == at {
			out.err, m.failed = m.failed, nil
		} else {
			out.err = m.attempt(ctx, at, out.attempt > 1 || lost > 0)
		}
		out.duration = m.o.Clock.Since(start)
		if out.err == nil || !m.retries(ctx, n, &out, &lost) {
			return out
		}
	}
}

// decide observes the node at a position again, of which it was not known whether it is so: as often as the step may be attempted,
// the look that brings us here included. Nothing is run.
func (m *hostState) decide(ctx context.Context, at int) outcome {
	n := m.nodes[at]
	start := m.o.Clock.Now()
	out := outcome{attempt: 1, attempts: max(1, n.Meta().Retry.Attempts), err: m.found[at].err}
	for lost := 0; out.err != nil && m.retries(ctx, n, &out, &lost); {
		out.err = guard(func() error { return m.look(ctx, at) })
		if out.err == nil && m.found[at].undecided() {
			out.err = m.found[at].err
		}
	}
	out.duration = m.o.Clock.Since(start)
	return out
}

// retries waits for the time of n's next attempt, which out becomes then, after one that failed. It reports false if there is none.
// lost counts how often the host was lost.
func (m *hostState) retries(ctx context.Context, n plan.Node, out *outcome, lost *int) bool {
	if ctx.Err() != nil {
		return false
	}
	next := *out
	var delay time.Duration
	switch {
	case m.lost(out.err, *lost > 0):
		m.drop()
		if *lost++; *lost == max(1, m.o.Redial.Attempts) {
			return false
		}
		delay = m.delay(m.o.Redial, *lost)
	case final(out.err) || out.attempt == out.attempts:
		return false
	default:
		delay = m.delay(n.Meta().Retry, out.attempt)
		next.attempt++
	}
	if !m.again(ctx, of("", n), *out, delay) {
		return false
	}
	*out = next
	return true
}

// attempt is one attempt within the step's timeout. After a failed one, facts are observed again: part of the work, or all
// of it, may be done.
func (m *hostState) attempt(ctx context.Context, at int, again bool) error {
	limit := timeout(m.nodes[at].Meta())
	// The far side stops itself after limit and says what it was at; only if it does not is the connection given up.
	bounded, cancel := context.WithTimeout(ctx, limit+min(limit/10, 5*time.Second))
	defer cancel()
	err := guard(func() error { return m.once(bounded, at, again) })
	var p *Panic
	switch {
	case err == nil:
	case ctx.Err() == nil && bounded.Err() != nil:
		m.drop()
		err = &TimedOut{After: limit, Err: err}
	case errors.As(err, &p):
		m.drop()
	}
	return err
}

func (m *hostState) once(ctx context.Context, at int, again bool) error {
	n := m.nodes[at]
	if again {
		if done, err := m.isSo(ctx, at); done || err != nil {
			return err
		}
	}
	waits := step.Waits(n.Step)
	if err := m.found[at].err; err != nil && !errors.Is(err, step.ErrUnknown) && (!waits || !m.found[at].undecided()) {
		return err // before the host is locked for nothing
	}
	had := m.session != nil
	if err := m.dial(ctx); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	if !had && m.session.Waited() {
		// Of a run that was killed: it may have been this very step's.
		if done, err := m.isSo(ctx, at); done || err != nil {
			return err
		}
	}
	if err := m.stageAhead(ctx, at); err != nil {
		return err
	}
	var made outputs
	rt := m.runtime(n, m.view(at), &made)
	end := m.bound(at)
	rt.Session, rt.Look = m.session, m.query(at+1, end)
	err := n.Step.Run(ctx, rt)
	if waits && err != nil {
		return m.await(ctx, at, err)
	}
	if err != nil {
		return err
	}
	asked := m.query(at, end)
	if rt.Seen == nil {
		seen, err := m.observe(ctx, asked)
		if err != nil {
			return err
		}
		rt.Seen = seen
	}
	m.learn(asked, rt.Seen)
	m.judge(at, end)
	m.fresh = end
	if err := m.unmet(at); err != nil {
		return err
	}
	return made.publish(m.values)
}

// await observes the host until the node at a position, which waits for it, is so, or says that it will not be, or its time is over.
// err is what it said first.
func (m *hostState) await(ctx context.Context, at int, err error) error {
	n := m.nodes[at]
	start, limit := m.o.Clock.Now(), timeout(n.Meta())
	var told time.Time
	for {
		now := m.o.Clock.Now()
		missing, may := mayCome(err)
		if !may {
			return err
		}
		// What is missing may be told in other words each time; what is missing in the end is in the error.
		if told.IsZero() || now.Sub(told) >= repeatWaiting {
			ev := of(event.Waiting, n)
			ev.Message = missing
			m.tell(ev)
			told = now
		}
		if now.Sub(start) >= limit {
			return &TimedOut{After: limit, Missing: missing}
		}
		if !m.sleep(ctx, m.o.Jitter(nextPoll(now.Sub(start), hostPoll))) {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return &step.NotYet{Reason: missing}
		}
		if done, err := m.isSo(ctx, at); done || err != nil {
			return err
		}
		var made outputs
		rt := m.runtime(n, m.view(at), &made)
		rt.Session = m.session
		err = n.Step.Run(ctx, rt)
	}
}

// mayCome is what is missing, by the error of a step that waits, if it may still come: the host says so, or is too slow to tell.
func mayCome(err error) (missing string, may bool) {
	var notYet *step.NotYet
	var undecided *step.Undecided
	switch {
	case errors.As(err, &notYet):
		return notYet.Reason, true
	case errors.As(err, &undecided):
		return undecided.Error(), true
	}
	return "", false
}

// unmet is why a node that has run does not count as done, nil if it does.
func (m *hostState) unmet(at int) error {
	if f := m.found[at]; f.err != nil {
		return fmt.Errorf("ran, but it cannot be determined whether it is so now: %w", f.err)
	} else if len(f.diff) > 0 {
		return &Unmet{Diff: f.diff}
	}
	return nil
}

// isSo looks whether the node at a position is as it should be by now.
func (m *hostState) isSo(ctx context.Context, at int) (bool, error) {
	if err := m.look(ctx, at); err != nil || !m.found[at].done() {
		return false, err
	}
	m.values.publish(m.nodes[at].Meta().Makes, nil)
	return true, nil
}

// undo restores what the scope names, over a new connection if need be, telling of each change, and returns how many
// were restored.
func (m *hostState) undo(ctx context.Context, scope host.Scope, redial step.Retry) (restored int, err error) {
	byID := make(map[string]plan.Node, len(m.nodes))
	for _, n := range m.nodes {
		byID[n.ID] = n
	}
	began := ctx
	ctx, cancel := context.WithTimeout(ctx, m.o.UndoTimeout)
	defer cancel()
	total := 0
	if m.facts != nil && scope.All() {
		total = m.facts.UndoEntries
	}
	out := m.persist(ctx, event.Event{Host: m.name}, redial, func() error {
		if err := m.dial(ctx); err != nil {
			return err
		}
		if err := m.begin(ctx); err != nil {
			return err
		}
		return m.undoEntries(ctx, scope, func(u host.Undone) {
			n, ok := byID[u.Node]
			if !ok {
				n = plan.Node{ID: u.Node, Host: m.name}
			}
			ev := of(event.Undone, n)
			ev.Message, ev.Err = u.Key, u.Err
			if u.Err == nil {
				restored++
			} else {
				ev.Message = "could not restore " + u.Key + ": " + message(u.Err)
			}
			ev.Done, ev.Total = int64(restored), int64(max(total, restored))
			m.tell(ev)
		})
	})
	if out.err != nil && began.Err() == nil && ctx.Err() != nil {
		m.drop()
		return restored, noAnswer(m.name, "an undo", m.o.UndoTimeout)
	}
	return restored, out.err
}

// undoEntries is Undo of the session, which has so much time for each entry.
func (m *hostState) undoEntries(ctx context.Context, scope host.Scope, report func(host.Undone)) error {
	return m.inTime(ctx, "the undo of an entry", m.o.UndoEntryTimeout, func(ctx context.Context, extend func()) error {
		return m.session.Undo(ctx, scope, func(u host.Undone) {
			extend()
			report(u)
		})
	})
}

// leave ends the session and the connection. It is bounded, and done even when the run was cancelled: the next writer
// should not have to wait until the host notices. Its errors are of no interest: a lost connection ends the lock too.
func (m *hostState) leave(ctx context.Context, keep bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if m.session != nil {
		_ = m.session.End(ctx, keep)
	}
	m.drop()
}

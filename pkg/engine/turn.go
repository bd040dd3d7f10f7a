// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// A savepoint may need a turn (step.Savepoint.Turn): one host of the cluster at a time has it open. Among the engines that share Slots
// that is a slot; among all others it is a record in the cluster, which is held in the host's name: anyone who works on the host has the
// host's lock, so a run that was killed in its turn is gone on with by the host's next run at once. Other hosts take a turn over that
// was not renewed for its term, by their own clocks.

const (
	// turnTerm is how long a turn lasts after it was renewed. While its host restarts the only API server it cannot be.
	turnTerm = 15 * time.Minute
	// turnPoll is how often anyone who waits for a turn asks.
	turnPoll = 5 * time.Second
	// turnLimit is how long a host waits for its turn.
	turnLimit = 30 * time.Minute
	// turnSilence is for how long no API server may answer before a host that serves nobody goes on without a turn.
	turnSilence = time.Minute
	// turnRequest bounds one request about a turn.
	turnRequest = 10 * time.Second

	// settleLimit is how long a host that was rolled back may take to serve as it did, and settlePoll how often it is asked.
	settleLimit, settlePoll = 4 * time.Minute, 2 * time.Second
)

// errStopping ends the wait of a host whose run begins nothing new any more, because something has failed elsewhere.
var errStopping = errors.New("the run has stopped")

// turn is a host's.
type turn struct {
	w             *worker
	group, holder string
	// until is the position of the last of the host's nodes that need it.
	until int
	// recorded: the cluster has it. Without, no API server has answered.
	recorded bool
	stop     context.CancelFunc
	stopped  chan struct{}

	mu      sync.Mutex
	renewed time.Time
	// lost is who has taken the turn over, "" while nobody has.
	lost string
}

// takeTurn waits until it is the turn of n's host. It reports whether that took long enough for the host to have changed meanwhile.
// serves is asked when no API server answers: whether the host's does.
func (w *worker) takeTurn(ctx context.Context, n plan.Node, group string, serves func() (bool, error)) (t *turn, waited bool, err error) {
	start := w.o.Clock.Now()
	wait := func(why string) {
		waited = true
		ev := of(event.Waiting, n)
		ev.Message = fmt.Sprintf("its turn (%s): %s", group, why)
		w.tell(ev)
	}
	bounded, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	if !w.o.Slots.take(bounded, w.stop, turnSlot(group), 1, func() { wait("another host of this process has it") }) {
		if ctx.Err() == nil && bounded.Err() != nil {
			return nil, waited, &TimedOut{After: turnLimit, Missing: "its turn (" + group + ")", Err: bounded.Err()}
		}
		return nil, waited, unawaited(ctx)
	}
	t = &turn{w: w, group: group, holder: n.Host}
	if err := t.take(ctx, start, wait, serves); err != nil {
		w.o.Slots.give(turnSlot(group))
		return nil, waited, err
	}
	return t, waited, nil
}

// unawaited is why a turn is not waited for any longer: the end of ctx, or else that the run stops. It is never nil, since a host without
// an error has its turn.
func unawaited(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errStopping
}

func turnSlot(group string) string { return "turn " + group }

// take has the cluster record the turn, when nobody else has it.
func (t *turn) take(ctx context.Context, start time.Time, wait func(string), serves func() (bool, error)) error {
	w := t.w
	var seen, over step.Turn
	var since, silent time.Time
	for {
		has, err := t.ask(ctx, over)
		now := w.o.Clock.Now()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && has.Holder == t.holder:
			t.recorded, t.renewed = true, now
			t.keepRenewing(ctx)
			return nil
		case err == nil:
			silent = time.Time{}
			if has.Holder != seen.Holder {
				wait(has.Holder + " has it")
			}
			if has != seen {
				seen, since, over = has, now, step.Turn{}
			}
			if now.Sub(since) >= cmp.Or(has.Term, turnTerm) {
				over = has
			}
		case unanswered(err) && silent.IsZero():
			silent = now
			wait("no API server answers: " + message(err))
		case unanswered(err) && now.Sub(silent) >= turnSilence:
			if is, askErr := serves(); askErr != nil || is {
				return errors.Join(fmt.Errorf("no API server answers from here, though %s serves: without one it cannot take its turn (%s)", t.holder, t.group),
					err, askErr)
			}
			return nil // what is done serves nobody, and may be what brings the cluster back
		case unanswered(err):
			_, _ = w.api.renew(ctx) // that it cannot be connected to is what the next request says
		default:
			return fmt.Errorf("take its turn (%s): %w", t.group, err)
		}
		if now.Sub(start) >= turnLimit {
			return &TimedOut{After: turnLimit, Missing: fmt.Sprintf("its turn (%s), which %s has", t.group, seen.Holder), Err: err}
		}
		if !w.sleep(ctx, turnPoll) {
			return unawaited(ctx)
		}
	}
}

// ask takes or renews the turn. A server that does not answer in time, as one whose etcd has just been restarted, has not answered.
func (t *turn) ask(ctx context.Context, over step.Turn) (has step.Turn, err error) {
	bounded, cancel := context.WithTimeout(ctx, turnRequest)
	defer cancel()
	cluster, err := t.w.api.get(bounded)
	if err == nil {
		has, err = cluster.TakeTurn(bounded, t.group, step.Turn{Holder: t.holder, Term: turnTerm}, over)
	}
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = &slow{after: turnRequest, err: err}
	}
	return has, err
}

// slow is the error of a request about a turn that was not answered in time.
type slow struct {
	after time.Duration
	err   error
}

func (s *slow) Error() string { return fmt.Sprintf("no answer within %s: %v", s.after, s.err) }
func (s *slow) Unwrap() error { return s.err }

// keepRenewing renews the turn until it is ended.
func (t *turn) keepRenewing(ctx context.Context) {
	ctx, t.stop = context.WithCancel(ctx)
	t.stopped = make(chan struct{})
	go func() {
		defer close(t.stopped)
		every := time.NewTicker(t.w.o.TurnRenewal) // by real time, whatever the clock of Options: it is no part of what a run does
		defer every.Stop()
		for {
			select {
			case <-every.C:
				_ = t.renew(ctx) // keep sees what it has come to
			case <-ctx.Done():
				return
			}
		}
	}()
}

// renew renews the turn, or finds out who has it.
func (t *turn) renew(ctx context.Context) error {
	has, err := t.ask(ctx, step.Turn{})
	if unanswered(err) {
		_, _ = t.w.api.renew(ctx) // for the next time: another host's API server may answer
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		return err
	case has.Holder != t.holder:
		t.lost = has.Holder
	default:
		t.renewed = t.w.o.Clock.Now()
	}
	return nil
}

// keep returns nil when the turn lasts for as long as the next node may take. It is asked right before each.
func (t *turn) keep(ctx context.Context, limit time.Duration) error {
	if t == nil || !t.recorded {
		return nil
	}
	err := t.renew(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.lost != "":
		return fmt.Errorf("its turn (%s) has ended: %s has it, so nothing more is changed", t.group, t.lost)
	case err != nil && !unanswered(err):
		return fmt.Errorf("renew its turn (%s): %w", t.group, err)
	case err != nil && t.w.o.Clock.Since(t.renewed)+limit >= turnTerm:
		return fmt.Errorf("its turn (%s) ends in %s and cannot be renewed: %w", t.group, turnTerm-t.w.o.Clock.Since(t.renewed).Round(time.Second), err)
	}
	return nil
}

// end gives the turn to anyone who waits for it: at once, or where the host is left half way when its term is over.
func (t *turn) end(ctx context.Context, atOnce bool) {
	if t == nil {
		return
	}
	defer t.w.o.Slots.give(turnSlot(t.group))
	if !t.recorded {
		return
	}
	t.stop()
	<-t.stopped
	if atOnce {
		t.release(ctx)
	}
}

// release removes what the cluster has recorded of the turn.
func (t *turn) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*turnRequest)
	defer cancel()
	for {
		cluster, err := t.w.api.get(ctx)
		if err == nil {
			err = cluster.EndTurn(ctx, t.group, t.holder)
		}
		if err == nil || !unanswered(err) || !t.w.pause(ctx, time.Second) {
			return // it ends with its term
		}
	}
}

// endLeftTurns ends the turns that a run which was killed has left to its host after the last change: nobody else would before their
// term. It does so under the host's lock, since another run may be what holds them. What cannot be asked ends with its term.
func (m *hostState) endLeftTurns(ctx context.Context, spans []span) {
	asked := map[string]bool{}
	for _, p := range spans {
		if p.Turn == "" || asked[p.Turn] {
			continue
		}
		asked[p.Turn] = true
		if has, err := m.hasTurn(ctx, p.Turn); err != nil || !has || m.begin(ctx) != nil {
			continue
		}
		(&turn{w: m.worker, group: p.Turn, holder: m.name}).release(ctx)
	}
}

func (m *hostState) hasTurn(ctx context.Context, group string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, turnRequest)
	defer cancel()
	cluster, err := m.api.get(ctx)
	if err != nil {
		return false, err
	}
	return cluster.HasTurn(ctx, group, m.name)
}

// hasTurn reports whether the node whose turn it is on h needs no turn among hosts, or h has it; if not, it may run when h has.
func (s *scheduler) hasTurn(h *hostRun) bool {
	p := h.span()
	if p == nil || h.turn != nil {
		return true
	}
	n := h.m.nodes[h.at]
	h.busy = true
	s.work(func() func() {
		t, waited, err := s.takeTurn(s.ctx, n, p.Turn, func() (bool, error) { return h.m.serves(s.ctx, p.Savepoint) })
		return func() {
			h.busy, h.turn, h.tookTurn = false, t, true
			switch {
			case err != nil && s.stopping:
			case err != nil:
				s.ended(h.nodes[h.at], outcome{changed: true, err: err})
			default:
				t.until = p.commits
				if waited {
					h.m.fresh = h.at // it is another time now
				}
			}
			s.moved = true
		}
	})
	return false
}

// span is the savepoint for which the node whose turn it is on h needs a turn among hosts: it opens it, or comes while it is open.
func (h *hostRun) span() *span {
	for k := range h.spans {
		p := &h.spans[k]
		if p.Turn != "" && p.opens <= h.at && h.at <= p.commits && (h.at == p.opens || p.Open(h.m.facts)) {
			return p
		}
	}
	return nil
}

// endTurn ends h's turn when it is past what needs it.
func (s *scheduler) endTurn(h *hostRun) {
	if t := h.turn; t != nil && h.at > t.until {
		h.turn = nil
		s.work(func() func() {
			t.end(s.ctx, true)
			return func() {}
		})
	}
}

// serves asks the host whether it serves as it does when the savepoint is not open. Where nothing tells, it does not.
func (m *hostState) serves(ctx context.Context, p step.Savepoint) (bool, error) {
	q := p.Query()
	if q.Empty() {
		return false, nil
	}
	if err := m.see(ctx, q); err != nil {
		return false, err
	}
	return p.Serves(m.facts), nil
}

// settles waits until a host that was rolled back serves as it did. It reports false if it does not in time.
func (m *hostState) settles(ctx context.Context, p step.Savepoint) bool {
	if q := p.Query(); q.Empty() {
		return true
	}
	for start := m.o.Clock.Now(); ; {
		if is, err := m.serves(ctx, p); err == nil && is {
			return true
		}
		if m.o.Clock.Since(start) >= settleLimit || !m.pause(ctx, settlePoll) {
			return false
		}
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// fail records the failure of a node for good, and holds back the rest of its host.
func (s *scheduler) fail(i int, out outcome) {
	n, gn := &s.nodes[i], s.g.Node(i).Value
	f := s.failure(gn.Host, out)
	f.Module, f.Task, f.Step, f.Node = gn.Module, gn.Task, gn.Name, gn.ID
	n.status, n.root = failed, gn.ID
	ev := of(event.Failed, gn)
	if h := n.host; h != nil {
		f.Position, f.Total = n.at+1, len(h.nodes)
		h.at, h.failure = n.at+1, f
	} else {
		for k, g := range s.gates {
			if g == i {
				f.Position, f.Total = k+1, len(s.gates)
			}
		}
	}
	ev.Done, ev.Total = int64(f.Position), int64(f.Total)
	s.failed(f, ev, out)
	if n.host != nil {
		s.block(n.host, f.root())
	}
}

// failHost records that a host could not be observed.
func (s *scheduler) failHost(h *hostRun, out outcome) {
	if interrupted(s.ctx, out.err) {
		s.interrupted = append(s.interrupted, "host "+h.m.name)
		return
	}
	h.failure = s.failure(h.m.name, out)
	s.failed(h.failure, event.Event{Type: event.Failed, Host: h.m.name}, out)
	s.block(h, h.failure.root())
}

func (s *scheduler) failed(f *Failure, ev event.Event, out outcome) {
	s.failures = append(s.failures, f)
	ev.Err, ev.Attempt, ev.Attempts, ev.Duration = f.Err, f.Attempt, f.Attempts, out.duration
	s.tell(ev)
	if s.o.Policy == UndoRun && !s.stopping {
		s.stopping = true
		close(s.stop)
	}
	s.moved = true
}

// failure says what went wrong on a host, without secrets.
func (w *worker) failure(hostName string, out outcome) *Failure {
	f := &Failure{Host: hostName, Attempt: out.attempt, Attempts: out.attempts, Err: w.redact.err(out.err)}
	if hostName != "" {
		f.Address = w.o.Address(hostName)
	}
	var he *host.Error
	if errors.As(f.Err, &he) {
		f.Output, f.Remedy = he.Output, he.Remedy
	}
	return f
}

// leave is called when no more nodes of h are to be run. Under UndoRun a host that was changed stays locked: its part may
// have to be undone yet.
func (s *scheduler) leave(h *hostRun) {
	h.left, s.moved = true, true
	for _, i := range h.nodes {
		s.giveSlot(i)
	}
	if s.o.Policy == UndoRun && h.m.began && s.ctx.Err() == nil {
		if s.wellAll(h.nodes) {
			s.endTurn(h) // for those who wait for it now: what is kept open is closed when they are done
		}
		s.release(h)
		return
	}
	var undo *host.Scope
	if f := h.failure; f != nil && f.Step != "" && s.o.Policy == UndoTask && s.ctx.Err() == nil {
		undo = &host.Scope{Run: s.id, Task: f.Module + "/" + f.Task}
	}
	if n := s.uncommitted(h); n != nil {
		undo = &host.Scope{From: n.ID}
	}
	s.close(h, undo)
}

// part closes what leave kept open, when the fate of the run is known.
func (s *scheduler) part() {
	for _, h := range s.hosts {
		if h.busy || h.parted || !s.take(h) {
			continue
		}
		var undo *host.Scope
		if s.stopping && h.m.began && s.ctx.Err() == nil {
			undo = &host.Scope{Run: s.id}
		}
		if n := s.uncommitted(h); n != nil {
			undo = &host.Scope{From: n.ID}
		}
		s.close(h, undo)
	}
}

// close undoes what the scope names, if there is one, and ends session and connection.
func (s *scheduler) close(h *hostRun, undo *host.Scope) {
	h.parted = true
	if undo != nil && undo.From == "" && !h.m.began {
		undo = nil
	}
	if undo != nil {
		h.rolledBack = undo.From
	}
	if h.m.conn == nil && undo == nil && h.turn == nil {
		s.closed(h, nil, 0, nil)
		return
	}
	if undo != nil && undo.Task == "" {
		undo.Except, h.stayed = s.stays(h)
	}
	h.busy = true
	keep := undo == nil && (h.failure != nil || s.ctx.Err() != nil)
	open := h.open()
	asDesired := undo == nil && h.failure == nil && h.at == len(h.nodes) && len(open) == 0
	s.work(func() func() {
		var restored int
		var err error
		if undo != nil {
			restored, err = h.m.undo(s.ctx, *undo, s.o.Redial)
		}
		settled := err == nil
		if h.rolledBack != "" {
			settled = settled && !slices.ContainsFunc(open, func(p span) bool { return !h.m.settles(s.ctx, p.Savepoint) })
		} else if s.ctx.Err() != nil {
			settled = len(open) == 0
		}
		// While a savepoint is open, or the host does not serve as it did, no other host's turn comes but by time.
		h.turn.end(s.ctx, settled)
		if asDesired && !h.tookTurn && s.ctx.Err() == nil {
			h.m.endLeftTurns(s.ctx, h.spans)
		}
		h.m.leave(s.ctx, keep)
		return func() {
			h.busy, h.turn, h.unsettled = false, nil, err == nil && !settled
			s.closed(h, undo, restored, err)
		}
	})
}

// stays are the tasks of h that are not rolled back: those with a step that has no way back (step.Meta.Stays), is done now, and was before
// this run. Of what begins with this run there is nothing to be lost. what are those that were changed in what is rolled back.
func (s *scheduler) stays(h *hostRun) (tasks, what []string) {
	journal := h.m.facts.Journal
	for at, i := range h.nodes {
		n, status := &h.m.nodes[at], s.nodes[i].status
		switch {
		case !slices.Contains(h.m.stood, n.ID), status == failed:
			continue
		case status != changed && status != skipped && !h.m.found[at].done():
			continue
		}
		tasks = append(tasks, n.Module+"/"+n.Task)
		if status == changed || h.rolledBack != "" && !journal[n.ID].Time.Before(journal[h.rolledBack].Time) {
			what = append(what, n.Meta().Stays)
		}
	}
	return tasks, what
}

// closed completes the report on h, and says of a failure in what state it left the host.
func (s *scheduler) closed(h *hostRun, undone *host.Scope, restored int, err error) {
	s.release(h)
	h.report.Exchanges, h.report.Facts, h.report.Restored = int(h.m.exchanges.Load()), h.m.facts, restored
	h.report.Adopted = h.m.adopted()
	if h.dialled {
		h.report.Duration = s.o.Clock.Since(h.start)
	}
	f := h.failure
	if f == nil && h.rolledBack != "" {
		f = s.heldBackBy(h)
	}
	if err != nil && f == nil {
		f = s.failure(h.m.name, outcome{err: err})
		s.failures = append(s.failures, f)
	}
	switch {
	case f == nil:
	case err != nil:
		f.Left = s.redact.text("What this run changed could not all be rolled back: " + message(err))
	case h.rolledBack != "":
		f.Left = fmt.Sprintf("Host %s was rolled back to what it was before %s (%s).", h.m.name, s.savepoint(h).About, plural(restored, "change"))
		if h.unsettled {
			f.Left += fmt.Sprintf(" It did not serve as before within %s.", settleLimit)
		}
	case undone != nil && undone.Task != "":
		f.Left = fmt.Sprintf("What this run changed for task %s was rolled back (%s).", f.Task, plural(restored, "change"))
	case undone != nil:
		f.Left = fmt.Sprintf("All that this run changed on it was rolled back (%s).", plural(restored, "change"))
	case h.m.began:
		f.Left = "Completed steps are kept; the next run resumes."
	}
	if f != nil && undone != nil && len(h.stayed) > 0 {
		f.Left += " What has no way back stays: " + strings.Join(h.stayed, ", ") + "."
	}
}

// uncommitted is the node that has opened the first savepoint of h that is open, if h is not to be left with it: something failed,
// here or in a gate that h waits for. It is nil where nothing is to be rolled back. A run that was stopped from outside goes on
// later.
func (s *scheduler) uncommitted(h *hostRun) *plan.Node {
	cut := slices.ContainsFunc(h.nodes, func(i int) bool { return s.nodes[i].root != "" })
	if !cut || s.ctx.Err() != nil {
		return nil
	}
	for i, n := range h.m.nodes {
		if p, _ := step.SavepointOf(n.Step); p != nil && p.Open(h.m.facts) {
			return &h.m.nodes[i]
		}
	}
	return nil
}

// savepoint is the one to which h was rolled back.
func (s *scheduler) savepoint(h *hostRun) *step.Savepoint {
	i, _ := s.g.Index(h.rolledBack)
	p, _ := step.SavepointOf(s.g.Node(i).Value.Step)
	return p
}

// open are the savepoints of h that are.
func (h *hostRun) open() []span {
	return slices.DeleteFunc(slices.Clone(h.spans), func(p span) bool { return !p.Open(h.m.facts) })
}

// heldBackBy is the failure elsewhere that held h back, nil if there is none.
func (s *scheduler) heldBackBy(h *hostRun) *Failure {
	for _, i := range h.nodes {
		for _, f := range s.failures {
			if s.nodes[i].root == f.root() {
				return f
			}
		}
	}
	return nil
}

// rollBackGates has steps on the controller roll back what they did, the last first, as far as the policy says so. It comes
// after the hosts: their API servers may be among what was rolled back.
func (s *scheduler) rollBackGates() {
	if len(s.failures) == 0 || s.ctx.Err() != nil {
		return
	}
	for _, i := range slices.Backward(s.gates) {
		n := s.g.Node(i).Value
		if !s.rollsBack(i) {
			continue
		}
		if err := s.rollBack(n); err != nil {
			f := s.failure("", outcome{err: fmt.Errorf("roll back what the step did: %w", err)})
			f.Module, f.Task, f.Step, f.Node = n.Module, n.Task, n.Name, n.ID
			s.failures = append(s.failures, f)
		}
	}
}

// rollsBack reports whether gate i is to roll back what it did: where the policy says so, and whatever it says, what a savepoint
// takes of it, when the host was rolled back to that or the gate itself has kept it from being opened.
func (s *scheduler) rollsBack(i int) bool {
	n, ran := s.g.Node(i).Value, s.nodes[i].status == changed || s.nodes[i].status == failed
	for _, d := range s.g.Downstream(i) {
		down := s.g.Node(d).Value
		if opens, _ := step.SavepointOf(down.Step); opens != nil && (s.nodes[d].host.rolledBack == down.ID || ran && s.nodes[d].root != "") {
			return true
		}
	}
	switch s.o.Policy {
	case UndoRun:
		return ran
	case UndoTask:
		return ran && slices.ContainsFunc(s.failures, func(f *Failure) bool {
			return f.Host == "" && f.Module == n.Module && f.Task == n.Task
		})
	}
	return false
}

func (s *scheduler) rollBack(n plan.Node) error {
	ctx, cancel := context.WithTimeout(s.ctx, timeout(n.Meta()))
	defer cancel()
	for lost := 1; ; lost++ {
		err := guard(func() error {
			rt, err := s.gateRuntime(ctx, n, &outputs{})
			if err != nil {
				return err
			}
			return n.Step.Rollback(ctx, rt)
		})
		if !unanswered(err) || lost >= s.o.Redial.Attempts {
			return err
		}
		if !s.pause(ctx, s.delay(s.o.Redial, lost)) {
			return err
		}
	}
}

// reportOn counts.
func (s *scheduler) reportOn(start time.Time) Report {
	r := Report{
		Run: s.id, Intent: s.intent, Cluster: s.cluster, Duration: s.o.Clock.Since(start),
		Controller: s.count(s.gates),
	}
	for _, h := range s.hosts {
		h.report.Counts = s.count(h.nodes)
		r.Hosts = append(r.Hosts, h.report)
	}
	return r
}

func (s *scheduler) count(nodes []int) Counts {
	c := Counts{Total: len(nodes)}
	for _, i := range nodes {
		switch s.nodes[i].status {
		case changed:
			c.Changed++
		case skipped:
			c.Skipped++
		case failed:
			c.Failed++
		case blocked:
			c.Blocked++
		case pending, running: // the run was interrupted
		}
	}
	return c
}

// error is nil when every node ended well.
func (s *scheduler) error() error {
	e := &Error{Intent: s.intent, Cluster: s.cluster, Interrupted: s.interrupted}
	var never []string
	for i := range s.nodes {
		if s.nodes[i].status == pending {
			never = append(never, s.g.Node(i).ID)
		}
	}
	for _, f := range s.failures {
		e.Failures = append(e.Failures, *f)
	}
	switch {
	case len(never) > 0 && s.ctx.Err() != nil:
		e.Cause = context.Cause(s.ctx)
	case len(never) > 0:
		e.Cause = fmt.Errorf("defect of the engine: never reached %s", strings.Join(never, ", "))
	case len(e.Failures) == 0:
		return nil
	}
	return e
}

// closing is the run in one line.
func closing(r Report, err error) string {
	t := r.Total()
	hosts := plural(len(r.Hosts), "host")
	if err != nil {
		return fmt.Sprintf("%s, %d of %d steps as desired, %d failed, %d not attempted",
			hosts, t.Changed+t.Skipped, t.Total, t.Failed, t.Total-t.Changed-t.Skipped-t.Failed)
	}
	return fmt.Sprintf("%s, %s, %d of %d steps as desired already", hosts, plural(t.Changed, "change"), t.Skipped, t.Total)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

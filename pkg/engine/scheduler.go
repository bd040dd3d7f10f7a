// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// scheduler is the state of one run. All of it belongs to the goroutine that calls run; workers reach it only through
// what they leave in inbox.
type scheduler struct {
	*worker
	ctx   context.Context
	plan  *plan.Plan
	g     *graph.Graph[plan.Node]
	nodes []node
	hosts []*hostRun
	gates []int // nodes on the controller, in topological order

	inbox chan func()
	busy  int // workers whose result is outstanding
	free  int // hosts that may still be worked on
	moved bool

	failures    []*Failure
	interrupted []string
	stopping    bool // UndoRun: nothing new is begun
}

// status of a node.
type status int

const (
	pending status = iota
	running
	skipped
	changed
	failed
	blocked
)

type node struct {
	status status
	// root is the ID of the node, or the host, whose failure failed or blocked this one.
	root string
	// after and takes are the nodes that this one waits for; takes only if it differs.
	after, takes []int
	// host and at: where it is; nil on the controller.
	host *hostRun
	at   int
	// slot is whether it has, or waits for, one of the slots of its limit.
	slot slot
	// Of gates: wanted by somebody; cancel ends it while it is running.
	wanted bool
	cancel context.CancelCauseFunc
}

// slot is how far a node is with the slot that it needs.
type slot int

const (
	noSlot slot = iota
	awaitsSlot
	hasSlot
)

func (n *node) ended() bool { return n.status > running }
func (n *node) well() bool  { return n.status == skipped || n.status == changed }

// hostRun is a host's part in the run.
type hostRun struct {
	m     *hostState // lent to a worker while busy
	nodes []int
	at    int // the node whose turn it is
	// alone: the nodes at the positions below it have each an exchange of their own. One that they shared has failed.
	alone int

	dialled, busy, holds bool
	prepared             bool     // what it will place is sent to it while it waits
	left                 bool     // none of its nodes is to be run any more
	parted               bool     // its session and connection are closed
	rolledBack           string   // the ID of the node to whose savepoint it was rolled back
	unsettled            bool     // it does not serve as before
	stayed               []string // what was not rolled back with it, because it has no way back
	spans                []span
	turn                 *turn // nil while it has none
	tookTurn             bool  // it had one in this run
	failure              *Failure
	start                time.Time
	report               HostReport
}

// span is a savepoint, by the positions of the nodes that open and commit it.
type span struct {
	step.Savepoint
	opens, commits int
}

// run executes the plan.
func (e *Engine) run(ctx context.Context, p *plan.Plan, reader event.Reader) (Report, error) {
	s := &scheduler{
		worker: e.worker(p.Intent, p.Cluster, reader), ctx: ctx, plan: p, g: p.Graph(),
		inbox: make(chan func()), free: e.o.HostsAtOnce,
	}
	start := s.o.Clock.Now()
	s.layOut()
	started, ended := bounds(p)
	started.Message, started.Total = p.Intent, int64(len(s.nodes))
	s.tell(started)
	s.loop(s.progress)
	s.endGates()
	s.loop(s.part)
	s.rollBackGates()
	report := s.reportOn(start)
	err := s.error()
	t := report.Total()
	ended.Duration, ended.Done, ended.Total = report.Duration, int64(t.Changed), int64(t.Total)
	ended.Err, ended.Message = err, closing(report, err)
	s.tell(ended)
	if err != nil {
		return report, err
	}
	return report, nil
}

// layOut numbers the nodes and finds out who waits for whom.
func (s *scheduler) layOut() {
	s.nodes = make([]node, s.g.Len())
	byName := make(map[string]*hostRun, len(s.plan.Hosts))
	for _, name := range s.plan.Hosts {
		h := &hostRun{m: &hostState{worker: s.worker, name: name, did: map[int]outcome{}}, report: HostReport{Host: name}}
		byName[name] = h
		s.hosts = append(s.hosts, h)
	}
	for _, i := range s.g.Order() {
		gn, n := s.g.Node(i), &s.nodes[i]
		for _, up := range s.g.Upstream(i) {
			if slices.Contains(gn.After, s.g.Node(up).ID) {
				n.after = append(n.after, up)
			} else {
				n.takes = append(n.takes, up)
			}
		}
		if gn.Value.Host == plan.Controller {
			s.gates = append(s.gates, i)
			continue
		}
		h := byName[gn.Value.Host]
		n.host, n.at = h, len(h.nodes)
		h.nodes = append(h.nodes, i)
		h.m.nodes = append(h.m.nodes, gn.Value)
		opens, commits := step.SavepointOf(gn.Value.Step)
		if opens != nil {
			h.spans = append(h.spans, span{Savepoint: *opens, opens: n.at, commits: s.g.Len()})
		}
		for k := range h.spans {
			if p := &h.spans[k]; p.Dir == commits {
				p.commits = n.at
			}
		}
	}
}

// work has f done by a worker; what f returns is then done here.
func (s *scheduler) work(f func() func()) {
	s.busy++
	s.moved = true
	go func() { s.inbox <- f() }()
}

// loop starts what can be started and takes in what was done, until there is neither.
func (s *scheduler) loop(start func()) {
	for {
		s.moved = true
		for s.moved {
			s.moved = false
			start()
		}
		if s.busy == 0 {
			return
		}
		finish := <-s.inbox
		s.busy--
		finish()
	}
}

// progress starts everything that can be started now. Hosts that were begun go before hosts that were not.
func (s *scheduler) progress() {
	for _, h := range s.hosts {
		if h.dialled {
			s.advance(h)
		}
	}
	for _, i := range s.gates {
		s.advanceGate(i)
	}
	for _, h := range s.hosts {
		if !h.dialled {
			s.advance(h)
		}
	}
}

// take gives h one of the places for hosts that are worked on.
func (s *scheduler) take(h *hostRun) bool {
	if h.holds {
		return true
	}
	if s.free == 0 {
		return false
	}
	s.free--
	h.holds = true
	return true
}

// release gives the place back: h waits for something.
func (s *scheduler) release(h *hostRun) {
	if h.holds {
		h.holds = false
		s.free++
		s.moved = true
	}
}

// advance takes a host as far as it goes without a worker, and then starts one.
func (s *scheduler) advance(h *hostRun) {
	switch {
	case h.busy || h.left:
		return
	case s.ctx.Err() != nil:
		s.leave(h)
		return
	case s.stopping:
		s.block(h, s.failures[0].root())
		s.leave(h)
		return
	case !h.dialled && len(h.nodes) > 0:
		if s.take(h) {
			s.contact(h)
		}
		return
	}
	for h.at < len(h.nodes) {
		s.endTurn(h)
		i := h.nodes[h.at]
		n := &s.nodes[i]
		if root := s.failedAmong(n.after); root != "" {
			s.block(h, root)
			break
		}
		if !s.wellAll(n.after) {
			s.release(h)
			return
		}
		fresh := h.at < h.m.fresh
		if fresh && h.m.found[h.at].done() {
			s.values.publish(s.g.Node(i).Makes, nil)
			s.ended(i, h.m.did[h.at])
			h.at++
			continue
		}
		unsure := fresh && h.m.found[h.at].undecided() && !step.Waits(h.m.nodes[h.at].Step)
		if fresh && !unsure {
			if root := s.failedAmong(n.takes); root != "" {
				s.block(h, root)
				break
			}
			if !s.wellAll(n.takes) {
				s.prepare(h)
				return
			}
			if !s.mayRun(i) || !s.hasTurn(h) {
				s.release(h)
				return
			}
		}
		if s.take(h) {
			switch {
			case unsure:
				s.decide(h)
			case fresh:
				s.act(h)
			default:
				s.look(h)
			}
		}
		return
	}
	s.leave(h)
}

// prepare has what h will place sent to it, once, while it waits for what another host or the controller makes. It takes none of the
// places for hosts that are worked on while that is sent, which goes on beside.
func (s *scheduler) prepare(h *hostRun) {
	if h.prepared || h.m.session != nil || !s.take(h) {
		s.release(h)
		return
	}
	h.prepared = true
	if len(h.m.lots(s.ctx, h.at)) == 0 {
		s.release(h)
		return
	}
	h.busy = true
	s.work(func() func() {
		h.m.prepare(s.ctx, h.at)
		return func() {
			h.busy = false
			s.wantFor(h)
		}
	})
}

// contact dials h and observes it.
func (s *scheduler) contact(h *hostRun) {
	h.dialled, h.busy, h.start = true, true, s.o.Clock.Now()
	s.work(func() func() {
		out := h.m.contact(s.ctx, h.m.query(0, len(h.m.nodes)), s.o.Redial)
		return func() {
			h.busy = false
			if out.err != nil {
				s.failHost(h, out)
				return
			}
			done := 0
			for _, f := range h.m.found {
				if f.done() {
					done++
				}
			}
			s.tell(event.Event{
				Type: event.HostObserved, Host: h.m.name, Duration: out.duration,
				Done: int64(done), Total: int64(len(h.nodes)),
			})
			s.wantFor(h)
		}
	})
}

// look judges the node whose turn it is from fresh facts.
func (s *scheduler) look(h *hostRun) {
	s.looks(h, func() outcome {
		return h.m.persist(s.ctx, of("", h.m.nodes[h.at]), s.o.Redial, func() error { return h.m.look(s.ctx, h.at) })
	})
}

// decide finds out whether the node whose turn it is is so, which was not known.
func (s *scheduler) decide(h *hostRun) { s.looks(h, func() outcome { return h.m.decide(s.ctx, h.at) }) }

// looks has the node whose turn it is observed by f.
func (s *scheduler) looks(h *hostRun, f func() outcome) {
	h.busy = true
	s.work(func() func() {
		out := f()
		return func() {
			h.busy = false
			if out.err != nil {
				out.changed = true
				s.ended(h.nodes[h.at], out)
				return
			}
			s.wantFor(h)
		}
	})
}

// mayRun reports whether node i may run on one host more; if not, it may when it has got a slot.
func (s *scheduler) mayRun(i int) bool {
	n, value := &s.nodes[i], s.g.Node(i).Value
	limits := value.Limits
	if limits.Concurrency <= 0 || n.slot == hasSlot {
		return true
	}
	if n.slot == awaitsSlot {
		return false
	}
	n.slot = awaitsSlot
	s.work(func() func() {
		got := s.o.Slots.take(s.ctx, s.stop, limits.Group, limits.Concurrency, func() {
			ev := of(event.Waiting, value)
			ev.Message = fmt.Sprintf("its turn: %s on at most %s at once", limits.Group, plural(limits.Concurrency, "host"))
			s.tell(ev)
		})
		return func() {
			n.slot = noSlot
			if got {
				n.slot = hasSlot
			}
			if n.host.left {
				s.giveSlot(i)
			}
		}
	})
	return false
}

// giveSlot releases what node i has.
func (s *scheduler) giveSlot(i int) {
	if n := &s.nodes[i]; n.slot == hasSlot {
		n.slot = noSlot
		s.o.Slots.give(s.g.Node(i).Value.Limits.Group)
	}
}

// sharing is one more than the position of the last node that shares the exchange of the one whose turn it is.
func (s *scheduler) sharing(h *hostRun) int {
	if h.at < h.alone {
		return h.at + 1
	}
	most := min(h.m.sharing(h.at), h.m.fresh)
	end := h.at
	for ; end < most; end++ {
		i := h.nodes[end]
		n, value := &s.nodes[i], s.g.Node(i).Value
		// What waits for others does not share, whether they are ready by now or not: which steps share is known before the run.
		elsewhere := func(up int) bool { return s.nodes[up].host != h }
		if value.Limits.Concurrency > 0 || len(s.g.Node(i).Makes) > 0 ||
			len(n.takes) > 0 || end > h.at && slices.ContainsFunc(n.after, elsewhere) {
			break
		}
	}
	return max(end, h.at+1)
}

// share brings the nodes up to, not including, end about in one exchange.
func (s *scheduler) share(h *hostRun, end int) {
	h.busy = true
	s.work(func() func() {
		if err := h.turn.keep(s.ctx, h.m.o.ObserveTimeout); err != nil {
			return func() { h.busy = false; s.ended(h.nodes[h.at], outcome{changed: true, err: err}) }
		}
		h.m.share(s.ctx, h.at, end)
		return func() {
			h.busy = false
			h.alone = end
			if s.ctx.Err() != nil {
				s.ended(h.nodes[h.at], outcome{err: context.Cause(s.ctx)})
			}
			s.wantFor(h)
		}
	})
}

// act brings the node whose turn it is about, with those that share its exchange.
func (s *scheduler) act(h *hostRun) {
	if end := s.sharing(h); end > h.at+1 {
		s.share(h, end)
		return
	}
	i := h.nodes[h.at]
	h.busy = true
	s.nodes[i].status = running
	s.work(func() func() {
		out := outcome{changed: true}
		if out.err = h.turn.keep(s.ctx, timeout(h.m.nodes[h.at].Meta())); out.err == nil {
			out = h.m.act(s.ctx, h.at)
		}
		return func() {
			h.busy = false
			s.giveSlot(i)
			s.ended(i, out)
			if s.nodes[i].well() {
				h.at++
				s.wantFor(h)
			}
		}
	})
}

// ended records what came of a node and tells of it.
func (s *scheduler) ended(i int, out outcome) {
	n, gn := &s.nodes[i], s.g.Node(i).Value
	s.moved = true
	if out.err != nil {
		if interrupted(s.ctx, out.err) {
			n.status = pending
			s.interrupted = append(s.interrupted, gn.ID)
			return
		}
		s.fail(i, out)
		return
	}
	ev := of(event.Skipped, gn)
	n.status = skipped
	if out.changed {
		ev.Type, n.status = event.Changed, changed
		ev.Message, ev.Duration, ev.Attempt, ev.Attempts = out.what, out.duration, out.attempt, out.attempts
	}
	s.tell(ev)
}

// block marks what is left of h as held back by root.
func (s *scheduler) block(h *hostRun, root string) {
	for ; h.at < len(h.nodes); h.at++ {
		if out, ok := h.m.did[h.at]; ok && h.m.found[h.at].done() {
			s.ended(h.nodes[h.at], out) // it shared the exchange of what has failed, and came after it
			continue
		}
		s.blockNode(h.nodes[h.at], root)
	}
}

func (s *scheduler) blockNode(i int, root string) {
	if s.nodes[i].ended() {
		return
	}
	s.nodes[i].status, s.nodes[i].root = blocked, root
	s.moved = true
	ev := of(event.Blocked, s.g.Node(i).Value)
	ev.Message = fmt.Sprintf("not attempted: %s failed", root)
	s.tell(ev)
}

// failedAmong returns the root cause when one of the nodes failed or was blocked.
func (s *scheduler) failedAmong(nodes []int) string {
	for _, i := range nodes {
		if s.nodes[i].root != "" {
			return s.nodes[i].root
		}
	}
	return ""
}

func (s *scheduler) wellAll(nodes []int) bool {
	return !slices.ContainsFunc(nodes, func(i int) bool { return !s.nodes[i].well() })
}

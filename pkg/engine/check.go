// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// probeTimeout bounds a look at the cluster: one that does not answer is a finding, not something to wait for.
const probeTimeout = 15 * time.Second

// Check observes every host, in one exchange each, and the cluster, and changes nothing. The report says of each node
// that differs how. Hosts that do not answer are named in the error, an *Error, as are steps of which it cannot be told whether they are
// so (see Undecided); what else was found is in the report beside it. In the event stream the intent is "Check".
func (e *Engine) Check(ctx context.Context, p *plan.Plan) (Report, error) {
	w := e.worker("Check", p.Cluster, e.o.Reader)
	start := w.o.Clock.Now()
	started, ended := bounds(p)
	started.Message, started.Total = p.Intent, int64(p.Graph().Len())
	w.tell(started)
	c := &check{
		worker: w, plan: p, machines: make(map[string]*hostState), found: make(map[string]finding),
		lines:  make(map[string]map[string]string),
		report: Report{Run: w.id, Intent: p.Intent, Cluster: p.Cluster},
	}
	failures := c.hosts(ctx)
	c.gates(ctx)
	c.conclude()
	err := w.errorOf(ctx, append(failures, c.undecided()...))
	c.report.Duration = w.o.Clock.Since(start)
	t := c.report.Total()
	ended.Duration, ended.Done, ended.Total = c.report.Duration, int64(t.Changed), int64(t.Total)
	ended.Err, ended.Message = err, closing(c.report, err)
	w.tell(ended)
	return c.report, err
}

// check is the state of one Check.
type check struct {
	*worker
	plan     *plan.Plan
	machines map[string]*hostState
	found    map[string]finding           // by node; hosts that did not answer have none
	lines    map[string]map[string]string // by node and subject
	report   Report
}

// hosts observes all hosts and judges their nodes.
func (c *check) hosts(ctx context.Context) []Failure {
	for _, name := range c.plan.Hosts {
		c.machines[name] = &hostState{worker: c.worker, name: name}
	}
	g := c.plan.Graph()
	for _, i := range g.Order() {
		if n := g.Node(i).Value; n.Host != plan.Controller {
			m := c.machines[n.Host]
			m.nodes = append(m.nodes, n)
		}
	}
	var mu sync.Mutex
	durations := make(map[string]time.Duration)
	failures := c.each(ctx, c.plan.Hosts, func(ctx context.Context, name string) outcome {
		m := c.machines[name]
		out := m.contact(ctx, m.query(0, len(m.nodes)), atOnce())
		var lines map[string]map[string]string
		if out.err == nil {
			lines = m.explain(ctx)
		}
		m.leave(ctx, true)
		mu.Lock()
		maps.Copy(c.lines, lines)
		durations[name] = out.duration
		mu.Unlock()
		if out.err != nil {
			return out
		}
		done := 0
		for _, f := range m.found {
			if f.done() {
				done++
			}
		}
		c.tell(event.Event{
			Type: event.HostObserved, Host: name, Duration: out.duration, Done: int64(done), Total: int64(len(m.nodes)),
		})
		return out
	})
	for _, name := range c.plan.Hosts {
		m := c.machines[name]
		for at, f := range m.found {
			c.found[m.nodes[at].ID] = f
		}
		c.report.Hosts = append(c.report.Hosts, HostReport{
			Host: name, Counts: Counts{Total: len(m.nodes)}, Exchanges: int(m.exchanges.Load()), Facts: m.facts,
			Duration: durations[name],
		})
	}
	return failures
}

// gates probes what a run would want of the controller, in order.
func (c *check) gates(ctx context.Context) {
	g := c.plan.Graph()
	wanted := c.wanted()
	for _, i := range g.Order() {
		n := g.Node(i).Value
		switch {
		case n.Host != plan.Controller:
		case !wanted[i]:
			c.found[n.ID] = finding{}
		default:
			c.found[n.ID] = c.probe(ctx, i)
		}
	}
	// What took an output that is known now can be decided.
	for _, m := range c.machines {
		for at, f := range m.found {
			if errors.Is(f.err, step.ErrUnknown) {
				m.judge(at, at+1)
				c.found[m.nodes[at].ID] = m.found[at]
			}
		}
	}
}

// wanted says which gates a run would run; see demand.go. As all is known beforehand here, one pass backwards will do.
func (c *check) wanted() map[int]bool {
	g := c.plan.Graph()
	wanted := make(map[int]bool)
	order := g.Order()
	for k := len(order) - 1; k >= 0; k-- {
		i := order[k]
		n := g.Node(i)
		if n.Value.Host != plan.Controller {
			f, seen := c.found[n.ID]
			wanted[i] = seen && !f.done() && !f.undecided()
			continue
		}
		wanted[i] = len(n.Makes) == 0 || len(g.Downstream(i)) == 0
		for _, d := range g.Downstream(i) {
			wanted[i] = wanted[i] || wanted[d]
		}
	}
	return wanted
}

// probe observes a gate, if all is there that it takes.
func (c *check) probe(ctx context.Context, i int) finding {
	g := c.plan.Graph()
	for _, up := range g.Upstream(i) {
		if f, seen := c.found[g.Node(up).ID]; !seen || !f.done() {
			return finding{err: &waitsFor{node: g.Node(up).ID}}
		}
	}
	n := g.Node(i).Value
	p, ok := n.Step.(step.Prober)
	if !ok {
		return finding{err: step.ErrUnknown}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var f finding
	var made outputs
	f.err = guard(func() error {
		rt, err := c.gateRuntime(ctx, n, &made)
		if err != nil {
			return err
		}
		f.diff, err = p.Probe(ctx, rt)
		return err
	})
	if f.done() {
		f.err = made.publish(c.values)
	}
	return f
}

// undecided are the failures of steps of which it is not known whether they are so. It tells of them.
func (c *check) undecided() []Failure {
	var failures []Failure
	for _, name := range c.plan.Hosts {
		m := c.machines[name]
		for at, f := range m.found {
			if !f.undecided() {
				continue
			}
			out, n := outcome{attempt: 1, attempts: 1, err: f.err}, m.nodes[at]
			failure := c.failure(name, out)
			failure.Module, failure.Task, failure.Step, failure.Node = n.Module, n.Task, n.Name, n.ID
			failure.Position, failure.Total = at+1, len(m.nodes)
			ev := of(event.Failed, n)
			ev.Err, ev.Attempt, ev.Attempts = failure.Err, out.attempt, out.attempts
			c.tell(ev)
			failures = append(failures, *failure)
		}
	}
	return failures
}

// Undecided reports whether err is that of a Check whose every host has answered, and which failed for nothing but steps of which it
// cannot be told whether they are so. Of all others the report has what was found.
func Undecided(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Cause == nil && len(e.Failures) > 0 &&
		!slices.ContainsFunc(e.Failures, func(f Failure) bool { return host.KindOf(f.Err) != host.KindUndecided })
}

// waitsFor is why a gate cannot be observed.
type waitsFor struct{ node string }

func (w *waitsFor) Error() string { return "decided after " + w.node }

// conclude counts, and writes down what differs.
func (c *check) conclude() {
	byName := make(map[string]*Counts, len(c.report.Hosts))
	for i := range c.report.Hosts {
		byName[c.report.Hosts[i].Host] = &c.report.Hosts[i].Counts
	}
	g := c.plan.Graph()
	for i := range g.Len() {
		n := g.Node(i).Value
		counts := &c.report.Controller
		if n.Host != plan.Controller {
			counts = byName[n.Host]
		} else {
			counts.Total++
		}
		f, seen := c.found[n.ID]
		switch {
		case !seen:
			counts.Blocked++
			c.report.Checks = append(c.report.Checks, plan.Check{Node: n.ID, Unknown: "the host was not observed"})
			continue
		case f.done():
			counts.Skipped++
			continue
		}
		found := plan.Check{Node: n.ID, Diff: f.diff}
		if f.undecided() {
			counts.Failed++
		} else {
			counts.Changed++
		}
		for subject, lines := range c.lines[n.ID] {
			if found.Lines == nil {
				found.Lines = make(map[string]string)
			}
			found.Lines[subject] = c.redact.text(lines)
		}
		if f.err != nil {
			found.Unknown = c.redact.text(message(f.err))
		}
		c.report.Checks = append(c.report.Checks, found)
	}
}

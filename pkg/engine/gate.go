// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// errUnneeded ends a gate that nobody waits for any more.
var errUnneeded = errors.New("nobody waits for it any more")

const (
	// Who waits asks again after a part of the time that it has waited, within these bounds, so that it goes on late by no more than that.
	pollPart  = 20
	firstPoll = 100 * time.Millisecond
	// hostPoll is as firstPoll, of a host: each time, a program is started there, on which that may wait which is waited for.
	hostPoll = 500 * time.Millisecond
	lastPoll = 2 * time.Second
	// repeatWaiting is how long a gate that keeps missing the same thing is silent, and goes on with one connection to the cluster.
	repeatWaiting = 30 * time.Second
)

// nextPoll is after how long to ask again, having waited for so long.
func nextPoll(waited, first time.Duration) time.Duration {
	return min(max(waited/pollPart, first), lastPoll)
}

// gate brings a node on the controller about: attempts until one succeeds.
func (w *worker) gate(ctx context.Context, n plan.Node) outcome {
	meta := n.Meta()
	start := w.o.Clock.Now()
	out := outcome{attempt: 1, attempts: max(1, meta.Retry.Attempts)}
	limit := timeout(meta)
	for lost := 0; ; {
		bounded, cancel := context.WithTimeout(ctx, limit)
		missing := ""
		out.err = guard(func() error { return w.pass(bounded, n, &out, &missing) })
		if out.err != nil && ctx.Err() == nil && bounded.Err() != nil {
			out.err = &TimedOut{After: limit, Missing: missing, Err: out.err}
		}
		cancel()
		out.duration = w.o.Clock.Since(start)
		if out.err == nil || ctx.Err() != nil || final(out.err) {
			return out
		}
		var delay time.Duration
		next := out
		switch {
		case unanswered(out.err):
			if lost++; lost == max(1, w.o.Redial.Attempts) {
				return out
			}
			_, _ = w.api.renew(ctx) // that it cannot be connected to is reported by the next attempt
			delay = w.delay(w.o.Redial, lost)
		case out.attempt == out.attempts:
			return out
		default:
			delay = w.delay(meta.Retry, out.attempt)
			next.attempt++
		}
		if !w.again(ctx, of("", n), out, delay) {
			return out
		}
		out = next
	}
}

// unanswered reports whether the API server could not be reached or was not ready to answer: it restarts when its
// manifest changes, and etcd elects a leader now and then. As with hosts, that is no failure of the step.
func unanswered(err error) bool {
	var op *net.OpError
	var late *slow
	var network net.Error // such as a handshake that a server which has just started does not get round to
	if errors.As(err, &network) && network.Timeout() && !errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	return errors.As(err, &op) || errors.As(err, &late) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

// pass is one attempt: look, and if it is not so run, as often as the step says NotYet.
func (w *worker) pass(ctx context.Context, n plan.Node, out *outcome, missing *string) error {
	p, ok := n.Step.(step.Prober)
	if !ok {
		return fmt.Errorf("a step of kind %s cannot run on the controller", step.KindOf(n.Step))
	}
	meta := n.Meta()
	var made outputs
	rt, err := w.gateRuntime(ctx, n, &made)
	if err != nil {
		return err
	}
	diff, err := p.Probe(ctx, rt)
	if err != nil {
		return err
	}
	if len(diff) == 0 {
		return made.publish(w.values)
	}
	out.changed, out.what = true, summary(diff)
	ev := of(event.Started, n)
	ev.Attempt, ev.Attempts, ev.Message = out.attempt, out.attempts, meta.Description
	w.tell(ev)
	if err := w.poll(ctx, n, rt, missing); err != nil {
		return err
	}
	// What makes outputs has shown by them that it succeeded; a token, for one, differs each time.
	if len(meta.Makes) == 0 {
		diff, err := p.Probe(ctx, rt)
		if err != nil {
			return fmt.Errorf("ran, but it cannot be determined whether it is so now: %w", err)
		}
		if len(diff) > 0 {
			return &Unmet{Diff: diff}
		}
	}
	return made.publish(w.values)
}

// poll runs the step until it does not say NotYet any more.
func (w *worker) poll(ctx context.Context, n plan.Node, rt *step.Runtime, missing *string) error {
	start := w.o.Clock.Now()
	told, connected := time.Time{}, start
	for {
		err := n.Step.Run(ctx, rt)
		var notYet *step.NotYet
		if !errors.As(err, &notYet) {
			return err
		}
		now := w.o.Clock.Now()
		if notYet.Reason != *missing || now.Sub(told) >= repeatWaiting {
			ev := of(event.Waiting, n)
			ev.Message = notYet.Reason
			w.tell(ev)
			told = now
		}
		*missing = notYet.Reason
		if now.Sub(connected) >= repeatWaiting {
			cluster, err := w.api.renew(ctx)
			if err != nil {
				return err
			}
			rt.Cluster, connected = cluster, now
		}
		if now.Sub(start) >= rt.Timeout {
			return &TimedOut{After: rt.Timeout, Missing: notYet.Reason, Err: err}
		}
		if !w.sleep(ctx, w.o.Jitter(nextPoll(now.Sub(start), firstPoll))) {
			return context.Cause(ctx)
		}
	}
}

func (w *worker) gateRuntime(ctx context.Context, n plan.Node, made *outputs) (*step.Runtime, error) {
	cluster, err := w.api.get(ctx)
	if err != nil {
		return nil, err
	}
	rt := w.runtime(n, step.View{Values: w.values, Node: n.ID, Digest: n.Digest}, made)
	rt.Cluster = cluster
	return rt, nil
}

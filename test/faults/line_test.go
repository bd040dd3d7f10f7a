// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// fault is something that happens to a host while a node, a step of a run, is under way.
type fault struct {
	name string
	host int    // which of the pool's
	node string // without its host, or the whole of a gate's
	// due is the event of the node at which it happens.
	due event.Type
	// strike makes it happen, and ends it. retried is closed once the run has noticed.
	strike func(ctx context.Context, h *hosts.Host, retried <-chan struct{}) error
}

// id is the node's in the plan.
func (f *fault) id() string {
	if strings.HasPrefix(f.node, "controller/") {
		return f.node
	}
	return pool.Hosts[f.host].Name + "/" + f.node
}

// pauseTime is how long a host is paused: longer than its connection lives.
func pauseTime() time.Duration {
	if chosen.budget > 0 {
		return 20 * time.Second
	}
	return time.Minute
}

// One run survives all of this by itself: it connects again, looks, and goes on.
func TestLine(t *testing.T) {
	faults := []*fault{
		{name: "CableInUpload", host: 0, node: "runtime/images/containerd/images", due: event.Progress, strike: pullCable},
		{name: "SessionInUpload", host: 1, node: "runtime/images/containerd/images", due: event.Progress, strike: endSessions},
		{name: "Pause", host: 1, node: "kubernetes/kubelet/kubelet/programs", due: event.Started, strike: pause},
		{name: "SessionInCommand", host: 0, node: "kubernetes/kubeadm/kubeadm/control-plane", due: event.Started, strike: during("kubeadm init", endSessions)},
		{name: "PowerInCommand", host: 1, node: "kubernetes/kubeadm/kubeadm/join", due: event.Started, strike: during("kubeadm join", cutPower)},
		{name: "PowerOfAPIServer", host: 0, node: "controller/kubernetes/ready-faults-1/gate/node-faults-1", due: event.Started, strike: cutPower},
	}
	tr := newTrial(t)
	tr.reboot()
	p := tr.plan(len(subject.hosts))
	s := newStriker(tr.Context(), faults)
	_, err := engine.New(subject.options(s)).Run(tr.Context(), p)
	s.wait()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) { s.judge(t, f) })
	}
	if err != nil {
		t.Fatalf("the run did not come through: %v\n%s", err, strings.Join(s.told, "\n"))
	}
	tr.demandConverged(p)

	t.Run("PowerInReset", func(t *testing.T) {
		f := &fault{name: "PowerInReset", host: 1, due: event.Undone, strike: cutPower}
		s := newStriker(tr.Context(), []*fault{f})
		_, err := subject.reset(tr.Context(), s)
		s.wait()
		s.judge(t, f)
		if err != nil {
			t.Fatalf("the reset did not come through: %v\n%s", err, strings.Join(s.told, "\n"))
		}
	})
	tr.demandReset()
}

// reboot restarts all hosts and takes their snapshots anew: what a boot changes is none of ours.
func (tr *trial) reboot() {
	tr.Helper()
	for i, h := range tr.hosts {
		if err := cutPower(tr.Context(), h, nil); err != nil {
			tr.Fatal(err)
		}
		if err := h.WaitReady(tr.Context()); err != nil {
			tr.Fatal(err)
		}
		s, err := h.Snapshot(tr.Context())
		if err != nil {
			tr.Fatal(err)
		}
		tr.before[i] = s
	}
}

// striker has faults happen when they are due.
type striker struct {
	ctx     context.Context
	faults  []*fault
	strikes sync.WaitGroup

	mu      sync.Mutex
	began   map[*fault]bool
	retried map[*fault]chan struct{}
	ended   map[*fault]event.Type
	errs    map[*fault]error
	told    []string
}

func newStriker(ctx context.Context, faults []*fault) *striker {
	s := &striker{
		ctx: ctx, faults: faults, began: map[*fault]bool{}, retried: map[*fault]chan struct{}{},
		ended: map[*fault]event.Type{}, errs: map[*fault]error{},
	}
	for _, f := range faults {
		s.retried[f] = make(chan struct{})
	}
	return s
}

// Read begins what is due.
func (s *striker) Read(ev event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ev.Type != event.Progress && ev.Type != event.Skipped {
		s.told = append(s.told, ev.Time.Format("15:04:05.000 ")+ev.String())
	}
	for _, f := range s.faults {
		if ev.Node != f.id() && (f.node != "" || ev.Host != pool.Hosts[f.host].Name) {
			continue
		}
		switch {
		case s.began[f] && (ev.Type == event.Retrying || ev.Type == event.Waiting):
			select {
			case <-s.retried[f]:
			default:
				close(s.retried[f])
			}
		case slices.Contains([]event.Type{event.Changed, event.Skipped, event.Failed}, ev.Type):
			s.ended[f] = ev.Type
		}
		if ev.Type == f.due && !s.began[f] {
			s.began[f] = true
			s.strikes.Go(func() {
				err := f.strike(s.ctx, pool.Hosts[f.host], s.retried[f])
				s.mu.Lock()
				defer s.mu.Unlock()
				s.errs[f] = err
			})
		}
	}
}

// wait waits until all that has begun to happen is over.
func (s *striker) wait() { s.strikes.Wait() }

// judge fails the test unless the fault happened, was noticed, and the node came to a good end.
func (s *striker) judge(t *testing.T, f *fault) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.errs[f]; err != nil {
		t.Fatal(err)
	}
	if !s.began[f] {
		t.Fatal("it was never due")
	}
	select {
	case <-s.retried[f]:
	default:
		t.Error("the run did not notice")
	}
	if f.node != "" && s.ended[f] != event.Changed {
		t.Errorf("the node ended as %q", s.ended[f])
	}
}

// noticed waits until the run has.
func noticed(ctx context.Context, retried <-chan struct{}) error {
	select {
	case <-retried:
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("the run has not noticed within a minute")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pullCable takes the host off the network until the run has noticed.
func pullCable(ctx context.Context, h *hosts.Host, retried <-chan struct{}) error {
	if err := h.Disconnect(ctx); err != nil {
		return err
	}
	err := noticed(ctx, retried)
	if plug := h.Connect(context.WithoutCancel(ctx)); plug != nil {
		return plug
	}
	return err
}

// endSessions kills those processes of sshd that serve a connection.
func endSessions(ctx context.Context, h *hosts.Host, _ <-chan struct{}) error {
	_, err := h.Exec(ctx, "pkill", "-KILL", "-f", "^sshd: ")
	return err
}

func pause(ctx context.Context, h *hosts.Host, _ <-chan struct{}) error {
	if err := h.Pause(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(pauseTime()):
	case <-ctx.Done():
	}
	return h.Unpause(context.WithoutCancel(ctx))
}

// cutPower ends all that runs on the host, and boots it.
func cutPower(ctx context.Context, h *hosts.Host, _ <-chan struct{}) error {
	if err := h.Kill(ctx); err != nil {
		return err
	}
	return h.Start(context.WithoutCancel(ctx))
}

// during has a fault happen while a command runs on the host.
func during(
	command string, strike func(context.Context, *hosts.Host, <-chan struct{}) error,
) func(context.Context, *hosts.Host, <-chan struct{}) error {
	return func(ctx context.Context, h *hosts.Host, retried <-chan struct{}) error {
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		// The brackets keep pgrep from finding this shell.
		wait := fmt.Sprintf("until pgrep -f '[%c]%s' >/dev/null; do sleep 0.1; done", command[0], command[1:])
		if _, err := h.Exec(bounded, "sh", "-c", wait); err != nil {
			return fmt.Errorf("%s was not seen to run: %w", command, err)
		}
		return strike(ctx, h, retried)
	}
}

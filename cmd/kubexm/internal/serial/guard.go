// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package serial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Guard compares the copy of a cluster's state that a command works with with what the hosts say.
type Guard struct {
	// Dir is the copy. A command that changes hosts holds its lock.
	Dir clusterdir.Dir
	// Hosts are those that keep the serial, see Hosts.
	Hosts []string
	// Engine observes them, for whom Owners says.
	Engine *engine.Engine
	Dial   func(ctx context.Context, name string) (host.Host, error)
	Owners func(ctx context.Context, name string) (host.Ownership, error)
	// Holder names this process to who finds a host locked, and By who runs it to who finds the serial.
	Holder, By string
	// IsCurrent says that a person takes this copy for the truth.
	IsCurrent bool
	// Note warns.
	Note func(string)

	// written is this run's serial, once it is on its way, and missing are the hosts that did not get it.
	written *clusterdir.Serial
	missing []string
}

// patience is how long a host's lock is waited for: of a command that was killed, the host may not have noticed yet. It is how long a host
// is tried again, too, whose connection was lost.
const patience = 30 * time.Second

// Begin compares the copy with what the hosts say and writes the run's serial, into the copy first and then on the hosts that are the
// cluster's by now. facts are what was seen of the hosts with the lock held; nil is to look. The error is a *Behind if the copy is not the
// newest, and no host was changed then.
func (g *Guard) Begin(ctx context.Context, facts map[string]*host.Facts) error {
	authority, err := g.Dir.Authority()
	if err != nil || authority == "" || len(g.Hosts) == 0 {
		return err
	}
	before, err := g.local(authority)
	if err != nil {
		return err
	}
	if facts == nil {
		if facts, err = g.look(ctx); err != nil {
			return err
		}
	}
	if !g.IsCurrent {
		if err := g.judge(before, facts, authority); err != nil {
			return err
		}
	}
	next := Next(before, g.Hosts, facts, authority, g.By, time.Now())
	if err := g.Dir.WriteSerial(&next); err != nil {
		return fmt.Errorf("serial of the state of cluster %s: %w", g.Dir.Cluster, err)
	}
	g.written = &next
	var own []string
	for _, name := range g.Hosts {
		claim, err := g.Owners(ctx, name)
		if err != nil {
			return err
		}
		if f := facts[name]; f != nil && claim.Owns(f) {
			own = append(own, name)
		} else {
			g.missing = append(g.missing, name)
		}
	}
	err = g.write(ctx, own)
	if host.KindOf(err) == host.KindSuperseded && g.written.Pending {
		// Another copy was faster on the first host, so that none has this serial.
		err = fmt.Errorf("%w: work with that copy, or take this one for the truth: --state-is-current", err)
		err = errors.Join(err, g.Dir.WriteSerial(before))
	}
	return err
}

// End writes the run's serial on hosts that became the cluster's meanwhile. One that cannot be reached gets it from a later run.
func (g *Guard) End(ctx context.Context) error {
	if g.written == nil || len(g.missing) == 0 {
		return nil
	}
	facts, err := g.look(ctx)
	if err != nil {
		return err
	}
	var own []string
	for _, name := range g.missing {
		claim, err := g.Owners(ctx, name)
		if err != nil {
			return err
		}
		if f := facts[name]; f != nil && claim.Owns(f) {
			own = append(own, name)
		}
	}
	g.missing = nil
	return g.write(ctx, own)
}

// Again writes the run's serial on all hosts: those that were reset meanwhile and came back have lost it.
func (g *Guard) Again(ctx context.Context) error {
	g.missing = slices.Clone(g.Hosts)
	return g.End(ctx)
}

// Warn warns if the copy is not the newest, by what was seen of the hosts; nil is to look.
func (g *Guard) Warn(ctx context.Context, facts map[string]*host.Facts) {
	authority, err := g.Dir.Authority()
	if err != nil || authority == "" || len(g.Hosts) == 0 {
		return
	}
	local, err := g.local(authority)
	if err == nil && facts == nil {
		facts, err = g.look(ctx)
	}
	if err == nil {
		err = g.judge(local, facts, authority)
	}
	if err != nil {
		g.Note(err.Error())
	}
}

// Take makes the copy the newest that hosts say there is, for one that was read back from them and has no serial.
func (g *Guard) Take(ctx context.Context) error {
	authority, err := g.Dir.Authority()
	if err != nil || authority == "" {
		return err
	}
	facts, err := g.look(ctx)
	if err != nil {
		return err
	}
	return g.Dir.WriteSerial(Highest(g.Hosts, facts, authority))
}

// local is the copy's serial. One of another authority is of a cluster that had the name before.
func (g *Guard) local(authority string) (*clusterdir.Serial, error) {
	s, err := g.Dir.Serial()
	if err != nil || s == nil || s.Authority != authority {
		return nil, err
	}
	return s, nil
}

// judge is Judge, with what people must know.
func (g *Guard) judge(local *clusterdir.Serial, facts map[string]*host.Facts, authority string) error {
	err := Judge(local, g.Hosts, facts, authority)
	var behind *Behind
	if errors.As(err, &behind) {
		behind.Cluster, behind.Dir = g.Dir.Cluster, g.Dir.Path()
	}
	return err
}

// look observes the hosts. Those that do not answer are warned of: nobody knows what they would say. Of somebody else's nothing is known.
func (g *Guard) look(ctx context.Context) (map[string]*host.Facts, error) {
	facts, err := g.Engine.Look(ctx, g.Hosts, func(string) host.Query { return host.Query{} })
	var failed *engine.Error
	if err != nil && !errors.As(err, &failed) || ctx.Err() != nil {
		return nil, err
	}
	if failed != nil {
		for _, f := range failed.Failures {
			delete(facts, f.Host)
			if host.KindOf(f.Err) != host.KindForeign {
				g.Note(fmt.Sprintf("host %s does not say with which copy of the state it was changed: %v", f.Host, f.Err))
			}
		}
	}
	return facts, nil
}

// write writes the run's serial on hosts: on the first alone, so that of two copies at once one gets through, and then on all others.
func (g *Guard) write(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if err := g.writeOn(ctx, names[0]); err != nil {
		return err
	}
	if g.written.Pending {
		g.written.Pending = false
		if err := g.Dir.WriteSerial(g.written); err != nil {
			return err
		}
	}
	var others errgroup.Group
	for _, name := range names[1:] {
		others.Go(func() error { return g.writeOn(ctx, name) })
	}
	return others.Wait()
}

// writeOn writes the run's serial on a host. A lock that is held, and a host that does not answer, are waited for, for a while: to write a
// serial again that is there already is no change.
func (g *Guard) writeOn(ctx context.Context, name string) error {
	until := time.Now().Add(patience)
	for {
		err := g.tryOn(ctx, name)
		kind := host.KindOf(err)
		if kind != host.KindLocked && kind != host.KindUnreachable || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

func (g *Guard) tryOn(ctx context.Context, name string) (err error) {
	claim, err := g.Owners(ctx, name)
	if err != nil {
		return err
	}
	h, err := g.Dial(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	s, err := h.Begin(ctx, host.Run{ID: "serial-" + rand.Text(), Holder: g.Holder, Ownership: claim, Serial: &g.written.Serial})
	if err != nil {
		return err
	}
	return s.End(ctx, true)
}

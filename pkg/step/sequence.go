// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Sequence is a dedicated step: generic steps in order, with a name, a description and limits of its own. Parts that
// act on the host are run together, in one exchange, as far as only such parts follow each other.
type Sequence struct {
	// About is the step's description of itself; Takes and Makes are added to by its parts.
	About Meta
	// Done, when it is set and holds, makes the whole sequence count as done, whatever its parts say: for acts whose inputs
	// (a join token) are of no interest once they succeeded.
	Done *Done
	// Parts in the order in which they are made so.
	Parts []Step
}

// Until is s with Done set.
func (s Sequence) Until(d Done) Sequence {
	s.Done = &d
	return s
}

// New returns a Sequence.
func New(about Meta, parts ...Step) Sequence { return Sequence{About: about, Parts: parts} }

// Meta is About with what the parts take and make.
func (s Sequence) Meta() Meta {
	m := s.About
	m.Takes, m.Makes = slices.Clone(m.Takes), slices.Clone(m.Makes)
	for _, p := range s.Parts {
		pm := p.Meta()
		m.Takes = union(m.Takes, pm.Takes)
		m.Makes = union(m.Makes, pm.Makes)
	}
	return m
}

func union(a, b []string) []string {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// Observe is what all parts want to know.
func (s Sequence) Observe() host.Query {
	var q host.Query
	if s.Done != nil {
		q.Merge(s.Done.query())
	}
	for _, p := range s.Parts {
		q.Merge(p.Observe())
	}
	return q
}

// Precheck is what differs in any part.
func (s Sequence) Precheck(v View) (Diff, error) {
	if s.Done != nil {
		m, err := s.Done.missing(v)
		if m == "" {
			return nil, err
		}
		return Diff{{s.About.Name, m, "done"}}, nil
	}
	var d Diff
	for _, p := range s.Parts {
		pd, err := p.Precheck(v)
		if err != nil {
			return nil, err
		}
		d = append(d, pd...)
	}
	return d, nil
}

// Probe is Precheck for a sequence on the controller, whose parts look for themselves.
func (s Sequence) Probe(ctx context.Context, rt *Runtime) (Diff, error) {
	var d Diff
	for _, p := range s.Parts {
		pd, err := probe(ctx, rt, p)
		if err != nil {
			return nil, err
		}
		d = append(d, pd...)
	}
	return d, nil
}

func probe(ctx context.Context, rt *Runtime, s Step) (Diff, error) {
	if p, ok := s.(Prober); ok {
		return p.Probe(ctx, rt)
	}
	return s.Precheck(rt.View)
}

// Effect collects the effects of the parts that differ, when all parts are Actors; see Run for when they are not. A
// service is restarted in the act that writes what it watches.
func (s Sequence) Effect(v View) (Effect, error) {
	var all Effect
	for _, p := range s.Parts {
		a, ok := p.(Actor)
		if !ok {
			return Effect{}, fmt.Errorf("%s: part %T is not an act on a host", s.About.Name, p)
		}
		e, err := effectOf(a, v)
		if err != nil {
			return Effect{}, err
		}
		if svc, ok := p.(Service); ok && len(e.Changes) == 0 && svc.after(all.Changes) {
			if e, err = svc.Effect(v); err != nil {
				return Effect{}, err
			}
		}
		if e.Stdin != nil {
			if all.Stdin != nil {
				return Effect{}, fmt.Errorf("%s: two parts stream; split the step", s.About.Name)
			}
			all.Stdin = e.Stdin
		}
		all.Changes = append(all.Changes, e.Changes...)
		all.Blobs = append(all.Blobs, e.Blobs...)
	}
	return all, nil
}

// effectOf is the effect of a, or none when nothing differs.
func effectOf(a Actor, v View) (Effect, error) {
	d, err := a.Precheck(v)
	if err != nil && !unknown(err) {
		return Effect{}, err
	}
	if err == nil && len(d) == 0 {
		return Effect{}, nil
	}
	return a.Effect(v)
}

// Run runs the parts that differ: on a host as one act, which is journaled when all of it is done; on the controller one
// by one.
func (s Sequence) Run(ctx context.Context, rt *Runtime) error {
	if rt.Session != nil {
		return act(ctx, rt, s)
	}
	for _, p := range s.Parts {
		d, err := probe(ctx, rt, p)
		if err != nil && !unknown(err) {
			return err
		}
		if err == nil && len(d) == 0 {
			continue
		}
		if err := p.Run(ctx, rt); err != nil {
			return err
		}
	}
	return nil
}

// Rollback restores what this node's acts replaced: on the controller each part for itself, the last first.
func (s Sequence) Rollback(ctx context.Context, rt *Runtime) error {
	if rt.Session != nil {
		return rollback(ctx, rt)
	}
	for _, p := range slices.Backward(s.Parts) {
		if err := p.Rollback(ctx, rt); err != nil {
			return err
		}
	}
	return nil
}

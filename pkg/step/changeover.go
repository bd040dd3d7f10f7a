// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

//go:embed changeover.sh
var changeoverScript string

// Changeover comes before programs in use are replaced by others, such as those of another version. From then on, until
// ChangeoverEnd, it is under way: a run that fails on the host is undone back to where it began, over as many runs as that
// took (see package engine). It is known by Dir, which holds a copy of Keeps: of files that programs of the host write by
// themselves, so that no other step can tell what they were. On a host where the programs are not in use, it does nothing.
type Changeover struct {
	Programs []Program `json:"programs"`
	// InUse is a path that exists once the programs are in use.
	InUse string `json:"inUse"`
	// Dir is where Keeps are copied to; it exists while the changeover is under way. Its parent exists.
	Dir   string   `json:"dir"`
	Keeps []string `json:"keeps,omitempty"`
	// Before are commands that are run first, whenever a changeover begins: such as one that backs up what the programs work with.
	// What they leave on the host stays.
	Before []Command `json:"before,omitempty"`
}

// Program is an executable at a path with a content.
type Program struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// ProgramsIn are those that Programs installs into a directory.
func ProgramsIn(dir string, programs []Artifact) []Program {
	var all []Program
	for _, s := range Programs(dir, programs) {
		if f, ok := s.(File); ok {
			all = append(all, Program{Path: f.Path, Digest: f.From.Digest})
		}
	}
	return all
}

// Meta names the kind.
func (c Changeover) Meta() Meta { return Meta{Name: "changeover"} }

// Observe asks for the programs, whether they are in use, and whether the changeover is under way.
func (c Changeover) Observe() host.Query {
	q := host.Query{Paths: []host.PathQuery{{Path: c.InUse}, {Path: c.Dir}}}
	for _, p := range c.Programs {
		q.Paths = append(q.Paths, host.PathQuery{Path: p.Path, Digest: true})
	}
	return q
}

// Precheck names the programs in use that are about to be replaced.
func (c Changeover) Precheck(v View) (Diff, error) {
	if c.UnderWay(v.Facts) || !v.Facts.Paths[c.InUse].Exists {
		return nil, nil
	}
	var d Diff
	for _, p := range c.Programs {
		if have := v.Facts.Paths[p.Path]; have.Exists && have.Digest != p.Digest {
			d = append(d, Delta{"program " + p.Path, short(have.Digest), short(p.Digest)})
		}
	}
	if len(d) > 0 {
		for i, b := range c.Before {
			d = slices.Insert(d, i, Delta{"command " + b.Title, "before programs are replaced", "run"})
		}
	}
	return d, nil
}

// UnderWay reports whether the changeover has begun and not ended.
func (c Changeover) UnderWay(f *host.Facts) bool { return f != nil && f.Paths[c.Dir].Exists }

// Effect copies what is kept. Its undo puts that back, as long as the changeover is under way.
func (c Changeover) Effect(View) (Effect, error) {
	argv := func(what string) []string {
		return append([]string{"/bin/sh", "-euc", changeoverScript, "changeover", what, c.Dir}, c.Keeps...)
	}
	var all []host.Change
	for _, b := range c.Before {
		all = append(all, host.Command{Title: b.Title, Argv: b.Argv, Timeout: time.Duration(b.Timeout)})
	}
	return changes(append(all, host.Command{Title: "begin the changeover", Argv: argv("begin"), Undo: argv("undo")})...), nil
}

// Run begins the changeover.
func (c Changeover) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, c) }

// Rollback puts back what was kept.
func (c Changeover) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// ChangeoverOf is the changeover that s begins.
func ChangeoverOf(s Step) (Changeover, bool) {
	switch s := s.(type) {
	case Changeover:
		return s, true
	case Sequence:
		for _, p := range s.Parts {
			if c, ok := ChangeoverOf(p); ok {
				return c, true
			}
		}
	}
	return Changeover{}, false
}

// ChangeoverEnd ends the changeover whose Dir it names: what was done since stays. After are outputs that must be there first.
type ChangeoverEnd struct {
	Dir   string   `json:"dir"`
	After []string `json:"after,omitempty"`
}

// Meta takes After.
func (c ChangeoverEnd) Meta() Meta { return Meta{Name: "changeover-end", Takes: slices.Clone(c.After)} }

// Observe asks whether a changeover is under way.
func (c ChangeoverEnd) Observe() host.Query {
	return host.Query{Paths: []host.PathQuery{{Path: c.Dir}}}
}

// Precheck differs while one is.
func (c ChangeoverEnd) Precheck(v View) (Diff, error) {
	if v.Facts.Paths[c.Dir].Exists {
		return Diff{{"changeover", "under way", "ended"}}, nil
	}
	return nil, nil
}

// Effect removes what was kept, for good.
func (c ChangeoverEnd) Effect(View) (Effect, error) {
	return changes(host.Command{Title: "end the changeover", Argv: []string{"rm", "-rf", c.Dir}}), nil
}

// Run ends the changeover.
func (c ChangeoverEnd) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, c) }

// Rollback does nothing: what has ended has no way back but another changeover.
func (c ChangeoverEnd) Rollback(context.Context, *Runtime) error { return nil }

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

//go:embed savepoint.sh
var savepointScript string

// Savepoint opens a transaction on its host, which Commit with the same Dir closes: when a step of the host fails in between, all
// that was done from here on is rolled back, over as many runs as it took (see package engine). It opens only where something that
// is in use is about to be replaced. That it is open is known by Dir, which holds a copy of Keeps.
type Savepoint struct {
	// About is what is done between the savepoint and its commit, for messages: "the replacement of its programs".
	About string `json:"about"`
	// Replaces are files that come later with other contents: the savepoint opens when one of them is there and differs.
	Replaces []Content `json:"replaces,omitempty"`
	// Unless are what is known of what comes later by other means than its content: the savepoint opens when one of them does not hold.
	Unless []Done `json:"unless,omitempty"`
	// InUse is a path that exists once what is changed is in use, "" if it is as soon as it is there.
	InUse string `json:"inUse,omitempty"`
	// Within is a path that exists while another savepoint is open that this one need not be opened in, "" if there is none: all is
	// rolled back together then.
	Within string `json:"within,omitempty"`
	// Dir exists while the savepoint is open. Its parent exists where something is in use.
	Dir string `json:"dir"`
	// Keeps are files that programs of the host write by themselves, so that no step could tell what they were.
	Keeps []string `json:"keeps,omitempty"`
	// Before are commands that are run first, whenever the savepoint opens: such as one that backs up what the programs work with.
	// What they leave on the host stays.
	Before []Command `json:"before,omitempty"`
	// Turn, if not "", is what one host of the cluster at a time does: the savepoint is opened when it is this host's turn, which ends
	// when it is committed or rolled back.
	Turn string `json:"turn,omitempty"`
	// Settled says by what the host is known to serve as it did, once it was rolled back. The turn ends after that.
	Settled Done `json:"settled,omitzero"`
}

// Content is what a file at a path must have.
type Content struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// ProgramsIn are the contents of those that Programs installs into a directory.
func ProgramsIn(dir string, programs []Artifact) []Content {
	var all []Content
	for _, s := range Programs(dir, programs) {
		if f, ok := s.(File); ok {
			all = append(all, Content{Path: f.Path, Digest: f.From.Digest})
		}
	}
	return all
}

// Meta names the kind.
func (p Savepoint) Meta() Meta { return Meta{Name: "savepoint"} }

// Observe asks for what is replaced, whether it is in use, and whether the savepoint is open.
func (p Savepoint) Observe() host.Query {
	q := host.Query{Paths: []host.PathQuery{{Path: p.Dir}}}
	if p.InUse != "" {
		q.Paths = append(q.Paths, host.PathQuery{Path: p.InUse})
	}
	if p.Within != "" {
		q.Paths = append(q.Paths, host.PathQuery{Path: p.Within})
	}
	for _, c := range p.Replaces {
		q.Paths = append(q.Paths, host.PathQuery{Path: c.Path, Digest: true})
	}
	for _, d := range p.Unless {
		q.Merge(d.query())
	}
	return q
}

// Precheck names what is in use and about to be replaced.
func (p Savepoint) Precheck(v View) (Diff, error) {
	if p.Open(v.Facts) || p.InUse != "" && !v.Facts.Paths[p.InUse].Exists || p.Within != "" && v.Facts.Paths[p.Within].Exists {
		return nil, nil
	}
	var d Diff
	for _, c := range p.Replaces {
		if have := v.Facts.Paths[c.Path]; have.Exists && have.Digest != c.Digest {
			d = append(d, Delta{"file " + c.Path, short(have.Digest), short(c.Digest)})
		}
	}
	for _, u := range p.Unless {
		why, err := u.missing(v)
		if err != nil {
			return nil, err
		}
		if why != "" {
			d = append(d, Delta{"savepoint " + p.Dir, why, "opened"})
			break // one reason is enough
		}
	}
	if len(d) > 0 {
		for i, b := range p.Before {
			d = slices.Insert(d, i, Delta{"command " + b.Title, "before " + p.About, "run"})
		}
	}
	return d, nil
}

// Query is what Serves wants to know; it is empty where nothing tells.
func (p Savepoint) Query() host.Query { return p.Settled.query() }

// Serves reports by the answers to Query whether the host serves as it did.
func (p Savepoint) Serves(f *host.Facts) bool {
	missing, err := p.Settled.missing(View{Facts: f})
	return err == nil && missing == ""
}

// Open reports whether the savepoint was opened and not committed.
func (p Savepoint) Open(f *host.Facts) bool { return f != nil && f.Paths[p.Dir].Exists }

// Effect copies what is kept. Its undo restores that, as long as the savepoint is open.
func (p Savepoint) Effect(View) (Effect, error) {
	argv := func(what string) []string {
		return append([]string{"/bin/sh", "-euc", savepointScript, "savepoint", what, p.Dir}, p.Keeps...)
	}
	var all []host.Change
	for _, b := range p.Before {
		all = append(all, host.Command{Title: b.Title, Argv: b.Argv, Timeout: time.Duration(b.Timeout)})
	}
	return changes(append(all, host.Command{Title: "open the savepoint", Argv: argv("open"), Undo: argv("undo")})...), nil
}

// Run opens the savepoint.
func (p Savepoint) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, p) }

// Rollback restores what was kept.
func (p Savepoint) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Commit closes the savepoint whose Dir it names: what was done since stays. After are outputs that must be there first.
type Commit struct {
	Dir   string   `json:"dir"`
	After []string `json:"after,omitempty"`
}

// Meta takes After.
func (c Commit) Meta() Meta { return Meta{Name: "commit", Takes: slices.Clone(c.After)} }

// Observe asks whether the savepoint is open.
func (c Commit) Observe() host.Query { return host.Query{Paths: []host.PathQuery{{Path: c.Dir}}} }

// Precheck differs while it is.
func (c Commit) Precheck(v View) (Diff, error) {
	if v.Facts.Paths[c.Dir].Exists {
		return Diff{{"savepoint " + c.Dir, "open", "committed"}}, nil
	}
	return nil, nil
}

// Effect removes what was kept, for good.
func (c Commit) Effect(View) (Effect, error) {
	return changes(host.Command{Title: "commit", Argv: []string{"rm", "-rf", c.Dir}}), nil
}

// Run closes the savepoint.
func (c Commit) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, c) }

// Rollback does nothing: what was committed has no way back but another change.
func (c Commit) Rollback(context.Context, *Runtime) error { return nil }

// SavepointOf is the savepoint that s opens, and the Dir of the one that it commits; nil and "" if it does neither.
func SavepointOf(s Step) (opens *Savepoint, commits string) {
	switch s := s.(type) {
	case Savepoint:
		return &s, ""
	case Commit:
		return nil, s.Dir
	case Sequence:
		for _, part := range s.Parts {
			if opens, commits := SavepointOf(part); opens != nil || commits != "" {
				return opens, commits
			}
		}
	}
	return nil, ""
}

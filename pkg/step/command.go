// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Done says by what a thing that cannot be compared (a command's effect) is known to be there: all of it must hold. The
// zero Done never holds: the command runs whenever the sequence that it is part of does.
type Done struct {
	// Paths exist.
	Paths []string `json:"paths,omitempty"`
	// Units are active.
	Units []string `json:"units,omitempty"`
	// Check is a command that only looks, as host.CommandQuery is: it exits with 0. What it prints otherwise is shown as the
	// reason, so it must not print secrets. One that exits with CannotTell, or does not end in time, says neither that it holds nor
	// that it does not: see Undecided.
	Check []string `json:"check,omitempty"`
	// Journaled: a run of ours finished this node on this host.
	Journaled bool `json:"journaled,omitempty"`
	// SameInput: and it did so with the same input digest.
	SameInput bool `json:"sameInput,omitempty"`
	// Contents: each of these files has this content.
	Contents []Content `json:"contents,omitempty"`
	// Same: the two files of each pair are there and have one content, whatever that is.
	Same [][2]string `json:"same,omitempty"`
	// NoOlder: none of these files was modified before one that it was made of, or read.
	NoOlder []Age `json:"noOlder,omitempty"`
}

// Age is a file that is no older than others. Those that do not exist do not count.
type Age struct {
	Path string   `json:"path"`
	Than []string `json:"than"`
}

func (d Done) query() host.Query {
	q := host.Query{Units: d.Units}
	for _, p := range d.Paths {
		q.Paths = append(q.Paths, host.PathQuery{Path: p})
	}
	for _, c := range d.Contents {
		q.Paths = append(q.Paths, host.PathQuery{Path: c.Path, Digest: true})
	}
	for _, pair := range d.Same {
		q.Paths = append(q.Paths, host.PathQuery{Path: pair[0], Digest: true}, host.PathQuery{Path: pair[1], Digest: true})
	}
	for _, a := range d.NoOlder {
		for _, p := range append([]string{a.Path}, a.Than...) {
			q.Paths = append(q.Paths, host.PathQuery{Path: p})
		}
	}
	if len(d.Check) > 0 {
		q.Commands = []host.CommandQuery{d.check()}
	}
	return q
}

func (d Done) check() host.CommandQuery {
	return host.CommandQuery{ID: "check " + strings.Join(d.Check, " "), Argv: d.Check}
}

// missing returns "" when d holds, else why it does not. The error, *Undecided, says that this depends on a check that has no answer.
func (d Done) missing(v View) (string, error) {
	if d.never() {
		return "always", nil
	}
	for _, p := range d.Paths {
		if !v.Facts.Paths[p].Exists {
			return p + " is absent", nil
		}
	}
	for _, u := range d.Units {
		if v.Facts.Units[u].Active != "active" {
			return u + " is " + orNone(v.Facts.Units[u].Active), nil
		}
	}
	if m := d.missingOfFiles(v.Facts.Paths); m != "" {
		return m, nil
	}
	var unknown error
	if len(d.Check) > 0 {
		var r host.Result
		switch r, unknown = answerTo(v, d.check()); {
		case unknown != nil:
		case r.ExitCode == CannotTell:
			unknown = &Undecided{Check: shortOf(d.Check), Said: said(r)}
		case r.ExitCode != 0:
			return cmp.Or(said(r), "not ready yet"), nil
		}
	}
	entry, journaled := v.Facts.Journal[v.Node]
	if (d.Journaled || d.SameInput) && !journaled {
		return "not done yet", nil
	}
	if d.SameInput && entry.Digest != v.Digest {
		return "done with another input", nil
	}
	return "", unknown
}

// never reports whether d is the zero Done.
func (d Done) never() bool {
	return len(d.Paths)+len(d.Units)+len(d.Check)+len(d.Contents)+len(d.Same)+len(d.NoOlder) == 0 && !d.Journaled && !d.SameInput
}

// missingOfFiles is what does not hold of what files have and how old they are, "" if all does.
func (d Done) missingOfFiles(paths map[string]host.Path) string {
	for _, c := range d.Contents {
		if have := paths[c.Path]; !have.Exists {
			return c.Path + " is absent"
		} else if have.Digest != c.Digest {
			return c.Path + " has another content"
		}
	}
	for _, pair := range d.Same {
		for _, p := range pair {
			if !paths[p].Exists {
				return p + " is absent"
			}
		}
		if paths[pair[0]].Digest != paths[pair[1]].Digest {
			return pair[0] + " is not as it was made"
		}
	}
	for _, a := range d.NoOlder {
		for _, p := range a.Than {
			if paths[a.Path].Exists && paths[p].Exists && paths[a.Path].Modified.Before(paths[p].Modified) {
				return p + " is newer than " + a.Path
			}
		}
	}
	return ""
}

// Command runs an argument vector on the host, unless Done holds.
type Command struct {
	// Title says in a few words what it does.
	Title string   `json:"title"`
	Argv  []string `json:"argv"`
	Env   []string `json:"env,omitempty"`
	Stdin Text     `json:"stdin,omitempty"`
	// Undo is run when the step is undone; see host.Command.
	Undo []string `json:"undo,omitempty"`
	Done Done     `json:"done"`
	// Timeout of the command; 0 leaves it to the step's.
	Timeout Duration `json:"timeout,omitempty"`
}

// Meta is what stdin takes.
func (c Command) Meta() Meta { return Meta{Name: "command", Takes: c.Stdin.Takes()} }

// Observe asks for what Done needs.
func (c Command) Observe() host.Query { return c.Done.query() }

// Precheck differs when Done does not hold.
func (c Command) Precheck(v View) (Diff, error) {
	m, err := c.Done.missing(v)
	if m == "" {
		return nil, err
	}
	return Diff{{"command " + c.Title, m, "run"}}, nil
}

// Effect runs the command.
func (c Command) Effect(v View) (Effect, error) {
	in, err := c.Stdin.Resolve(v.Values)
	if err != nil {
		return Effect{}, err
	}
	return changes(host.Command{
		Title: c.Title, Argv: c.Argv, Env: c.Env, Stdin: in, Timeout: time.Duration(c.Timeout), Undo: c.Undo,
	}), nil
}

// Run runs the command.
func (c Command) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, c) }

// Rollback runs Undo.
func (c Command) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Claim declares paths that something which we start will fill, and commands that clean up after it. It is made once,
// before that thing starts, and does nothing until it is undone. What the paths hold already is copied to the undo store:
// that takes as long as it is large, and the undo takes it back.
type Claim struct {
	Paths []string `json:"paths,omitempty"`
	// Cleanup commands are run on undo, before the paths are removed, in this order.
	Cleanup []Cleanup `json:"cleanup,omitempty"`
}

// Cleanup is a command that is run on undo only.
type Cleanup struct {
	Title string   `json:"title"`
	Argv  []string `json:"argv"`
}

// Meta names the kind.
func (c Claim) Meta() Meta { return Meta{Name: "claim"} }

// Observe needs nothing: the journal tells.
func (c Claim) Observe() host.Query { return host.Query{} }

// Precheck differs until the journal has the claim.
func (c Claim) Precheck(v View) (Diff, error) {
	if _, ok := v.Facts.Journal[v.Node]; ok {
		return nil, nil
	}
	return Diff{{"claim", "not recorded", "recorded"}}, nil
}

// Effect records the claim. The paths come first and the clean-up last in reverse, as undo goes backwards.
func (c Claim) Effect(View) (Effect, error) {
	var e Effect
	if len(c.Paths) > 0 {
		e.Changes = append(e.Changes, host.Claim{Paths: c.Paths})
	}
	for i := len(c.Cleanup) - 1; i >= 0; i-- {
		e.Changes = append(e.Changes, host.Command{Title: c.Cleanup[i].Title, Undo: c.Cleanup[i].Argv})
	}
	return e, nil
}

// Run records the claim.
func (c Claim) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, c) }

// Rollback cleans up.
func (c Claim) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

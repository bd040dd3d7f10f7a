// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Undo implements host.Session.
func (s *session) Undo(ctx context.Context, scope host.Scope, report func(host.Undone)) error {
	if s.given {
		return nil
	}
	s.stopAhead(ctx) // which would write below what is removed
	if report == nil {
		report = func(host.Undone) {}
	}
	all := scope.All()
	chosen := s.logs.within(scope)
	s.patience = stopPatience
	if slices.ContainsFunc(chosen, func(e entry) bool { return e.kind == kindPackage }) {
		s.patience = packagePatience
	}
	sc := &script{}
	s.head(sc)
	s.actor(sc, host.Act{Node: "undo", Task: scope.Task})
	taken := s.journaled(scope, chosen)
	forget(sc, taken, all)
	r := &undoReader{session: s, forgets: taken, byNumber: map[int]undoing{}, report: report}
	for i, e := range chosen {
		call := undoCall(e, all)
		older := func(o entry) bool { return o.ofUnit() && o.target == e.target }
		if e.ofUnit() && len(call) > 3 && slices.ContainsFunc(chosen[i+1:], older) {
			// What it was before any of them counts. By what it was in between, a unit would be started again whose file is gone.
			call[len(call)-1] = unitIsLeft
		}
		sc.call("u_entry", call...)
		r.byNumber[e.seq] = undoing{e, putOff(e, call, chosen[i+1:])}
	}
	sc.line(":") // what could not be undone has said so
	code, err := s.ask(ctx, sc.String(), r.take)
	if err != nil {
		return err
	}
	if code != 0 {
		return s.host.commandError("", "the undo ended early", code, s.proc.said())
	}
	if err := s.afterUndo(ctx, chosen, r); err != nil {
		return err
	}
	if err := errors.Join(r.failures...); err != nil || !all {
		return err
	}
	return s.removeState(ctx)
}

// forget takes the journal's lines of nodes back, or all lines. It comes before anything is undone, and lasts by then: an undo may be cut
// anywhere, and a node that is in the journal counts as made, though what it has recorded may be undone.
func forget(sc *script, nodes []string, all bool) {
	switch {
	case all:
		sc.line(`[ ! -s "$S/journal" ] || { : >"$S/journal" && sync "$S/journal"; } || exit`)
	case len(nodes) > 0:
		for _, node := range nodes {
			sc.line(`printf '\n~ %s ;\n'`, quote(field(node)), `>>"$S/journal" || exit`)
		}
		sc.line(`sync "$S/journal" || exit`)
	}
	sc.line("k_say forgotten")
}

// unitIsLeft, as what a unit was made to do or as the invocation that it had, has the undo of an entry not start it again.
const unitIsLeft = "-"

// undoCall is the call that undoes e: number, kind, target and what the function of the kind wants besides.
func undoCall(e entry, all bool) []string {
	call := []string{strconv.Itoa(e.seq), e.kind, e.target}
	switch e.kind {
	case "made":
		return append(call, map[bool]string{true: "all", false: "some"}[all])
	case "block":
		// data: path, name
		if len(e.data) == 2 {
			return append(call, e.data[0], e.data[1], field(e.data[0]))
		}
	case "sysctl":
		return append(call, sysctlPath(e.target))
	case "unit":
		for _, d := range e.data {
			if d == "" {
				d = unitIsLeft
			}
			call = append(call, d)
		}
		return call
	}
	return append(call, e.data...)
}

// putOff is the call when it is put off until all else is undone, that of the older entries included: what they say of the unit counts, and
// is not to be overruled by it.
func putOff(e entry, call []string, older []entry) []string {
	later := slices.Clone(call)
	if e.kind == "unit" && len(call) > 3 && slices.ContainsFunc(older, func(o entry) bool { return o.kind == e.kind && o.target == e.target }) {
		later[3] = unitIsLeft
	}
	return later
}

// journaled lists the nodes whose journal lines the undo of the chosen entries takes back: those that wrote them, those of the
// scope's run that have no entry that stays, or all.
func (s *session) journaled(scope host.Scope, chosen []entry) []string {
	nodes := map[string]bool{}
	for node, j := range s.logs.journal {
		if scope.All() || scope.Node == node || scope.OfRun(j.Run) {
			nodes[node] = true
		}
	}
	for _, e := range s.logs.entries {
		if slices.Contains(scope.Except, e.task) {
			delete(nodes, e.node)
		}
	}
	for _, e := range chosen {
		if _, ok := s.logs.journal[e.node]; ok {
			nodes[e.node] = true
		}
	}
	var sorted []string
	for node := range nodes {
		sorted = append(sorted, node)
	}
	slices.Sort(sorted)
	return sorted
}

// afterUndo lets systemd see what came back, and starts again what ran before.
func (s *session) afterUndo(ctx context.Context, undone []entry, r *undoReader) error {
	reload := s.reload
	for _, e := range undone {
		reload = reload || e.ofUnit() || strings.Contains(path.Dir(e.target)+"/", "/systemd/")
	}
	if !reload {
		return nil
	}
	sc := &script{}
	s.head(sc)
	s.actor(sc, host.Act{Node: "undo"})
	sc.line("systemctl daemon-reload")
	back := "back"
	if len(r.failures) > 0 {
		back = "some" // of the files that came before what is put off
	}
	for _, call := range r.later {
		sc.call("u_later", append([]string{back}, call...)...)
	}
	sc.line(":")
	code, err := s.ask(ctx, sc.String(), r.take)
	if err == nil && code != 0 {
		err = s.host.commandError("", "the undo ended early", code, s.proc.said())
	}
	s.reload = s.reload && err != nil
	return err
}

// removeState removes everything that we keep on the host, the lock's file included.
func (s *session) removeState(ctx context.Context) error {
	sc := &script{}
	// A shell whose channel was closed may go on storing what it has read: from the directory's other name on it cannot.
	sc.line(`rm -rf "$T" && { [ ! -d "$S/staging" ] || mv "$S/staging" "$S/removed"; } && rm -rf "$S"`)
	code, err := s.ask(ctx, sc.String(), func(f frame) error { return s.host.unexpected(f) })
	if err == nil && code != 0 {
		err = s.host.commandError("", "cannot remove "+s.host.config.StateDir, code, s.proc.said())
	}
	s.given = err == nil
	return err
}

// undoing is an entry with the call that undoes it where that is put off.
type undoing struct {
	entry
	later []string
}

// undoReader takes the frames of an undo.
type undoReader struct {
	session  *session
	forgets  []string // nodes
	byNumber map[int]undoing
	report   func(host.Undone)
	later    [][]string // the calls that wait for the end
	output   map[int]*host.Error
	failures []error
}

func (r *undoReader) take(f frame) error {
	if f.kind() == "forgotten" {
		for _, node := range r.forgets {
			delete(r.session.logs.journal, node)
		}
		return nil
	}
	seq := int(parseInt(f.arg(1)))
	e, known := r.byNumber[seq]
	if f.kind() == "timeout" || f.kind() == "killed" {
		return nil
	}
	if !known {
		return r.session.host.unexpected(f)
	}
	switch f.kind() {
	case "failed":
		if r.output == nil {
			r.output = map[int]*host.Error{}
		}
		if r.output[seq] == nil {
			r.output[seq] = r.session.host.commandError(e.shown(), "cannot be undone", int(parseInt(f.arg(2))), strings.TrimSpace(string(f.body)))
		}
	case "undone":
		r.session.logs.drop(seq)
		r.report(host.Undone{Key: e.shown(), Node: e.shownNode()})
	case "later":
		r.later = append(r.later, e.later)
	case "stays":
	case "kept":
		var err error = r.output[seq]
		if r.output[seq] == nil {
			err = r.session.host.commandError(e.shown(), "cannot be undone", 1, "")
		}
		r.failures = append(r.failures, fmt.Errorf("undo of node %s: %w", e.shownNode(), err))
		r.report(host.Undone{Key: e.shown(), Node: e.shownNode(), Err: err})
	default:
		return r.session.host.unexpected(f)
	}
	return nil
}

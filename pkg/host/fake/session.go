// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// session is host.Session.
type session struct {
	connection *connection
	machine    *Machine
	run        host.Run
	boundaries int // of the act or undo that runs
}

// entry is one thing saved.
type entry struct {
	seq             int
	run, node, task string
	key             string
	// identity tells whether two entries save the same thing.
	identity string
	// undo restores what was there. It reports false when the entry must stay, without that being a failure.
	undo func(all bool) (done bool, err error)
}

// errCut is how a killed session stops.
var errCut = errors.New("killed")

// boundary is a point at which a test may have the session killed. The machine is locked.
func (s *session) boundary() error {
	s.boundaries++
	m := s.machine
	if m.cutAt > 0 && s.boundaries == m.cutAt {
		m.cutAt = 0
		m.writer = nil
		return errCut
	}
	return nil
}

// save records what undo restores, once per node and run.
func (s *session) save(a host.Act, key, identity string, undo func(all bool) (bool, error)) error {
	m := s.machine
	for _, e := range m.entries {
		if e.run == s.run.ID && e.node == a.Node && e.identity == identity {
			return s.boundary()
		}
	}
	if err := s.boundary(); err != nil {
		return err
	}
	m.seq++
	m.entries = append(m.entries, &entry{seq: m.seq, run: s.run.ID, node: a.Node, task: a.Task, key: key, identity: identity, undo: undo})
	return s.boundary()
}

// Do implements host.Session.
func (s *session) Do(ctx context.Context, acts ...host.Act) (*host.Facts, error) {
	var verify host.Query
	for _, a := range acts {
		if a.Node == "" {
			return nil, s.machine.error(host.KindInvalid, "the act has no node")
		}
		verify.Merge(a.Verify)
	}
	if err := s.exchange(ctx); err != nil {
		return nil, err
	}
	m := s.machine
	s.boundaries = 0
	for _, a := range acts {
		if err := s.act(ctx, a); err != nil {
			return nil, err
		}
	}
	f := m.observe(verify)
	m.mu.Lock()
	defer m.mu.Unlock()
	f.UndoEntries = len(m.entries)
	return f, nil
}

// act makes the changes of one act and journals it.
func (s *session) act(ctx context.Context, a host.Act) error {
	m := s.machine
	for _, c := range a.Changes {
		if err := s.change(ctx, a, c); err != nil {
			return m.changeError(c, a, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := s.boundary(); err != nil {
		return m.changeError(nil, a, err)
	}
	for _, c := range a.Changes {
		if f, ok := c.(host.File); ok {
			delete(m.staged, f.Blob) // consumed
		}
	}
	m.journal[a.Node] = host.JournalEntry{Run: s.run.ID, Digest: a.Digest, Time: time.Now().UTC()}
	if a.Done != nil {
		a.Done()
	}
	return nil
}

// changeError is err as the contract wants it, without the act's secrets.
func (m *Machine) changeError(c host.Change, a host.Act, err error) error {
	if errors.Is(err, errCut) {
		return m.error(host.KindUnreachable, "the connection is lost")
	}
	var e *host.Error
	if !errors.As(err, &e) {
		e = m.error(host.KindCommand, "the change failed")
		e.Err = err
	}
	if c != nil && e.Change == "" {
		e.Change = c.Key()
	}
	for _, c := range a.Changes {
		command, ok := c.(host.Command)
		if ok && !command.Stdin.IsZero() {
			word := string(command.Stdin.Reveal())
			e.Output = strings.ReplaceAll(e.Output, word, secret.Redacted)
			e.Message = strings.ReplaceAll(e.Message, word, secret.Redacted)
		}
	}
	return e
}

// change makes one change.
func (s *session) change(ctx context.Context, a host.Act, c host.Change) error {
	m := s.machine
	if m.OnChange != nil {
		if err := m.OnChange(a.Node, c); err != nil {
			return err
		}
	}
	if command, ok := c.(host.Command); ok {
		return s.command(ctx, a, command)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch c := c.(type) {
	case host.File:
		return s.file(a, c)
	case host.Directory:
		return s.directory(a, c)
	case host.Absent:
		return s.absent(a, c)
	case host.Block:
		return s.block(a, c)
	case host.Unit:
		return s.unit(a, c)
	case host.Sysctl:
		return s.sysctl(a, c)
	case host.Module:
		return s.module(a, c)
	case host.SwapOff:
		return s.swapOff(a)
	case host.Package:
		return s.packages(a, c)
	case host.Claim:
		return s.claim(a, c)
	case host.Inherit:
		return s.inherit(a, c)
	}
	return fmt.Errorf("%T is not a change that this host knows", c)
}

// command runs by OnCommand.
func (s *session) command(ctx context.Context, a host.Act, c host.Command) error {
	m := s.machine
	m.mu.Lock()
	if len(c.Undo) > 0 {
		undo := host.Command{Title: "undo of " + c.Title, Argv: c.Undo}
		identity := c.Key() + "\x00" + strings.Join(c.Undo, "\x00")
		if err := s.save(a, c.Key(), identity, func(bool) (bool, error) {
			m.mu.Unlock()
			defer m.mu.Lock()
			return true, failed(m.run(undo))
		}); err != nil {
			m.mu.Unlock()
			return err
		}
	}
	err := s.boundary()
	m.mu.Unlock()
	if err != nil || len(c.Argv) == 0 {
		return err
	}
	if c.StdinStream && a.Stdin != nil {
		content, err := readAll(a.Stdin)
		if err != nil {
			return err
		}
		c.Stdin = secret.New(content)
		if a.Progress != nil {
			a.Progress(int64(len(content)))
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := failed(m.run(c)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return s.boundary()
}

// failed is the error of a command that did not succeed.
func failed(r host.Result) error {
	if r.ExitCode == 0 {
		return nil
	}
	return &host.Error{
		Kind: host.KindCommand, Message: fmt.Sprintf("exit code %d", r.ExitCode), ExitCode: r.ExitCode, Output: string(bytes.TrimSpace(r.Stderr)),
	}
}

func readAll(open func() (io.ReadCloser, error)) (string, error) {
	source, err := open()
	if err != nil {
		return "", err
	}
	defer source.Close()
	content, err := io.ReadAll(source)
	return string(content), err
}

// lastRun is the position of the first entry of the last run in which node has any, by that node; len(entries) if it has none.
func lastRun(entries []*entry, node string) int {
	first := len(entries)
	for i, e := range slices.Backward(entries) {
		switch {
		case e.node != node:
		case first < len(entries) && entries[first].run != e.run:
			return first
		default:
			first = i
		}
	}
	return first
}

// Undo implements host.Session.
func (s *session) Undo(ctx context.Context, scope host.Scope, report func(host.Undone)) error {
	if err := s.exchange(ctx); err != nil {
		return err
	}
	m := s.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	s.boundaries = 0
	all := scope.All()
	var failures []error
	var kept []*entry
	entries := m.entries
	since := 0
	if scope.From != "" {
		since = lastRun(entries, scope.From)
	}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if i < since || !e.within(scope) {
			kept = append([]*entry{e}, kept...)
			continue
		}
		done, err := e.undo(all)
		if cut := s.boundary(); cut != nil {
			m.entries = append(append([]*entry(nil), entries[:i+1]...), kept...)
			return m.changeError(nil, host.Act{}, cut)
		}
		if err != nil {
			err = fmt.Errorf("undo of node %s: %w", e.node, m.changeError(nil, host.Act{}, err))
			failures = append(failures, err)
		}
		if err != nil || !done {
			kept = append([]*entry{e}, kept...)
		} else {
			delete(m.journal, e.node)
		}
		if (done || err != nil) && report != nil {
			report(host.Undone{Key: e.key, Node: e.node, Err: err})
		}
	}
	m.entries = kept
	for node, j := range m.journal {
		stays := slices.ContainsFunc(kept, func(e *entry) bool { return e.node == node && slices.Contains(scope.Except, e.task) })
		if all || scope.Node == node || scope.OfRun(j.Run) && !stays {
			delete(m.journal, node)
		}
	}
	if all && len(failures) == 0 {
		m.entries, m.staged = nil, map[string][]byte{}
		m.remove(host.StateDir)
	}
	return errors.Join(failures...)
}

func (e *entry) within(s host.Scope) bool {
	return s.Selects(e.run, e.task, e.node)
}

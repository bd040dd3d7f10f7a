// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// memory is a host in memory: files, the journal, the undo store, and faults that are asked for. It knows the changes
// that these tests make.
type memory struct {
	name string

	mu      sync.Mutex
	files   map[string]string
	journal map[string]host.JournalEntry
	undo    []entry
	holder  string
	calls   []string
	dials   int
	// faults are taken one after the other by the calls that they name.
	faults []fault
	// hold, when it is there, is waited for by every act.
	hold    chan struct{}
	reached chan struct{}
	// orphan is what an act of a cut connection does before a session begins.
	orphan func()
	// acting is called when an act begins.
	acting func()
	// stream is called with Act.Progress by commands that stream.
	stream func(sent func(int64))
	// also is spoilt when another path is written: /a → /b; or removed: /a → -/b.
	also map[string]string
	// comes says after how many checks a path is there by itself, and ends after how many it is said that it will not be.
	comes, ends map[string]int
}

type entry struct {
	run, task, node, path string
	before                *string
}

// fault makes, after skip calls of op, the next times calls fail; op is "dial", "observe", "begin", "undo", the key of a change, or
// "check" and a path.
type fault struct {
	op          string
	skip, times int
	err         error
}

func newMemory(name string) *memory {
	return &memory{
		name: name, files: map[string]string{}, journal: map[string]host.JournalEntry{}, also: map[string]string{},
		comes: map[string]int{}, ends: map[string]int{},
	}
}

// call records op and returns the fault that was asked for.
func (m *memory) call(op string) error {
	for i := range m.faults {
		if f := &m.faults[i]; f.op == op && f.skip > 0 {
			f.skip--
		} else if f.op == op && f.times > 0 {
			f.times--
			m.calls = append(m.calls, op+"!")
			return f.err
		}
	}
	m.calls = append(m.calls, op)
	return nil
}

func (m *memory) dial() (host.Host, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dials++
	if err := m.call("dial"); err != nil {
		return nil, err
	}
	return &connection{memory: m}, nil
}

// connection is one connection to a memory; its session ends with it.
type connection struct {
	*memory
	holds bool
}

func (c *connection) Name() string { return c.name }

func (c *connection) Exec(context.Context, host.Command) (*host.Result, error) {
	return nil, errors.New("nobody executes commands here")
}

func (c *connection) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds {
		c.holder, c.holds = "", false
	}
	return nil
}

func (c *connection) Observe(ctx context.Context, q host.Query) (*host.Facts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.call("observe"); err != nil {
		return nil, err
	}
	return c.see(q), nil
}

func (c *connection) see(q host.Query) *host.Facts {
	f := &host.Facts{
		System: host.System{Swap: []string{"/dev/sdb2"}}, Paths: map[string]host.Path{}, Journal: maps.Clone(c.journal), UndoEntries: len(c.undo),
	}
	for _, p := range q.Paths {
		text, ok := c.files[p.Path]
		if p.Path == host.StateDir {
			ok = len(c.journal)+len(c.undo) > 0
		}
		f.Paths[p.Path] = host.Path{}
		if ok {
			f.Paths[p.Path] = host.Path{Exists: true, Mode: 0o644, Owner: "root", Group: "root", Digest: digestOf(text)}
		}
	}
	for _, asked := range q.Commands {
		if asked.Argv[0] != "test" { // -e PATH
			continue
		}
		r := host.Result{ExitCode: 1}
		path := asked.Argv[2]
		if n, waits := c.comes[path]; waits {
			if c.comes[path]--; n == 0 {
				c.files[path] = path
			}
		}
		if n, waits := c.ends[path]; waits {
			if c.ends[path]--; n <= 0 {
				r = host.Result{ExitCode: step.NotAnyMore, Stdout: []byte("it has ended")}
			}
		}
		if _, ok := c.files[path]; ok {
			r.ExitCode = 0
		}
		if err := c.call("check " + asked.Argv[2]); host.KindOf(err) == host.KindUndecided {
			r = host.Result{ExitCode: step.CannotTell, Stdout: []byte("the disk does not say")}
		} else if err != nil {
			r = host.Result{ExitCode: 124, Stopped: asked.Limit()}
		}
		if f.Commands == nil {
			f.Commands = map[string]host.Result{}
		}
		f.Commands[asked.ID] = r
	}
	return f
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (c *connection) Begin(ctx context.Context, r host.Run) (host.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("begin"); err != nil {
		return nil, err
	}
	if c.holder != "" {
		return nil, &host.Error{Kind: host.KindLocked, Host: c.name, Message: "locked by " + c.holder}
	}
	c.holder, c.holds = r.Holder, true
	s := &session{connection: c, run: r, waited: c.orphan != nil}
	if s.waited {
		c.orphan()
		c.orphan = nil
	}
	return s, nil
}

type session struct {
	*connection
	run    host.Run
	waited bool
}

func (s *session) Waited() bool { return s.waited }

func (s *session) Stage(context.Context, []host.Blob) error { return nil }

func (s *session) StageAhead(context.Context, ...[]host.Blob) error { return nil }

func (s *session) Do(ctx context.Context, acts ...host.Act) (*host.Facts, error) {
	s.mu.Lock()
	hold, reached, acting := s.hold, s.reached, s.acting
	s.mu.Unlock()
	if acting != nil {
		acting()
	}
	if hold != nil {
		if reached != nil {
			close(reached)
		}
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.call("do"); err != nil {
		return nil, err
	}
	var verify host.Query
	for _, a := range acts {
		if err := s.act(a); err != nil {
			return nil, err
		}
		verify.Merge(a.Verify)
	}
	if err := s.call("answer"); err != nil { // the acts are done and nobody is notified
		return nil, err
	}
	return s.see(verify), nil
}

func (s *session) act(a host.Act) error {
	for _, change := range a.Changes {
		if err := s.call(change.Key()); err != nil {
			return err
		}
		switch c := change.(type) {
		case host.File:
			s.write(a, c.Path, string(c.Content.Reveal()))
		case host.Command: // "touch" makes a file, and an open savepoint is known by one
			switch {
			case c.StdinStream:
				s.stream(a.Progress)
			case c.Title == "open the savepoint":
				s.write(a, c.Argv[5], "kept")
			case c.Title == "commit":
				delete(s.files, c.Argv[2])
			default:
				s.write(a, c.Argv[1], "touched")
			}
		default:
			panic(fmt.Sprintf("memory does not know %T", c))
		}
	}
	s.journal[a.Node] = host.JournalEntry{Run: s.run.ID, Digest: a.Digest}
	if a.Done != nil {
		a.Done()
	}
	return nil
}

func (s *session) write(a host.Act, path, text string) {
	e := entry{run: s.run.ID, task: a.Task, node: a.Node, path: path}
	if before, ok := s.files[path]; ok {
		e.before = &before
	}
	s.undo = append(s.undo, e)
	s.files[path] = text
	if other, gone := strings.CutPrefix(s.also[path], "-"); gone {
		delete(s.files, other)
	} else if other != "" {
		s.files[other] = "spoilt"
	}
}

func (s *session) Undo(_ context.Context, scope host.Scope, report func(host.Undone)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.call("undo"); err != nil {
		return err
	}
	var errs []error
	s.undo = slices.DeleteFunc(s.undo, func(e entry) bool { return e.path == "" })
	since := 0
	for i, e := range s.undo {
		if scope.From != "" && e.node == scope.From {
			since = i
		}
	}
	for i, e := range slices.Backward(s.undo) {
		if i < since || !scope.Selects(e.run, e.task, e.node) {
			continue
		}
		err := s.call("undo " + e.path)
		report(host.Undone{Key: "file " + e.path, Node: e.node, Err: err})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if e.before == nil {
			delete(s.files, e.path)
		} else {
			s.files[e.path] = *e.before
		}
		delete(s.journal, e.node)
		s.undo[i].path = ""
	}
	s.undo = slices.DeleteFunc(s.undo, func(e entry) bool { return e.path == "" })
	if scope.All() && len(errs) == 0 {
		clear(s.journal)
	}
	return errors.Join(errs...)
}

func (s *session) End(ctx context.Context, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.call("end"); err != nil {
		return err
	}
	if s.holds {
		s.holder, s.holds = "", false
	}
	return nil
}

// String shows what is on the host.
func (m *memory) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(m.files)) {
		fmt.Fprintf(&b, "%s %q\n", p, m.files[p])
	}
	fmt.Fprintf(&b, "%d journaled, %d to undo", len(m.journal), len(m.undo))
	if m.holder != "" {
		fmt.Fprintf(&b, ", locked by %s", m.holder)
	}
	return b.String() + "\n"
}

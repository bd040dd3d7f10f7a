// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Config says how to be root on a host.
type Config struct {
	// Name for people.
	Name string
	// User who logs in.
	User string
	// Sudo says that User is not root and becomes root by sudo, with SudoPassword if that is set.
	Sudo         bool
	SudoPassword secret.Value
	// Heartbeat is how often a session tells the host that it lives; after six times without one the host ends it. 0 means
	// 10 s.
	Heartbeat time.Duration
	// StopGrace is how long what was cancelled may take to stop on the host, and a process to end after its output, before it is
	// given up with its session. 0 means 15 s. Package tools have more: see packagePatience.
	StopGrace time.Duration
	// StateDir is host.StateDir but in tests.
	StateDir string
	// Cut, in tests, kills the session's shells on the far side at the nth boundary of an act or undo; 0 never.
	Cut func() int
}

// Host is a host.Host on a Transport.
type Host struct {
	transport Transport
	config    Config
	stats     stats
	// link is what Stage has learned of the connection.
	link link
}

// New returns the host that t reaches.
func New(t Transport, c Config) *Host {
	if c.StateDir == "" {
		c.StateDir = host.StateDir
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 10 * time.Second
	}
	if c.StopGrace == 0 {
		c.StopGrace = 15 * time.Second
	}
	return &Host{transport: t, config: c}
}

// Name is Config.Name.
func (h *Host) Name() string { return h.config.Name }

// Stats tells what the host has cost so far.
func (h *Host) Stats() Stats { return h.stats.snapshot() }

// invalid is the error of a request that is refused before it is sent.
func (h *Host) invalid(change string, err error) error {
	return &host.Error{Kind: host.KindInvalid, Host: h.Name(), Change: change, Message: "refused before anything was sent", Err: err}
}

// Observe implements host.Host.
func (h *Host) Observe(ctx context.Context, q host.Query) (*host.Facts, error) {
	if err := checkQuery(q); err != nil {
		return nil, h.invalid("", err)
	}
	mark := newMark()
	o := newObservation(q, true)
	s := newScript(mark, h.config.StateDir, coreLib, observeLib)
	o.render(s, h.config.StateDir)
	s.call("k_say", "end", "0")
	s.line(`printf '\n@%s - end\n' "$N" >&2`)

	a := newAnswer(o)
	type errorFrames struct {
		frames []frame
		err    error
	}
	onStderr := make(chan errorFrames, 1)
	p, err := h.start(ctx, s.String(), func(stderr io.Reader) {
		frames, err := commandErrors(stderr, mark, len(q.Commands))
		onStderr <- errorFrames{frames, err}
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer stop()
	frames := newFrameReader(p.out, mark, framesFor(s.String()))
	for {
		f, err := frames.read()
		if err != nil {
			return nil, p.unread(ctx, err)
		}
		if f.kind() == "end" {
			break
		}
		if !a.add(f) {
			return nil, h.unexpected(f)
		}
	}
	commands := <-onStderr
	if commands.err != nil {
		return nil, p.unread(ctx, commands.err)
	}
	for _, f := range commands.frames {
		a.add(f)
	}
	// All is said: how the shell, sudo and the login end is not waited for.
	facts := a.finish(p.greeted)
	logs, err := parseLogs(a.files[h.config.StateDir+"/"+journalFile], a.files[h.config.StateDir+"/"+undoFile])
	if err != nil {
		return nil, h.damaged(err)
	}
	facts.Journal, facts.UndoEntries = logs.journal, len(logs.entries)
	facts.System.User = h.config.User
	h.own(facts, a.files)
	h.serial(facts, a.files)
	return facts, nil
}

// commandErrors reads standard error, where each of a query's commands has two frames of its own. The error says that there is
// more; an early end shows on standard output.
func commandErrors(stderr io.Reader, mark string, commands int) ([]frame, error) {
	var found []frame
	frames := newFrameReader(stderr, mark, 2*commands+1)
	frames.keep = host.MaxContent
	for {
		f, err := frames.read()
		var over *excess
		if errors.As(err, &over) {
			return nil, err
		}
		if err != nil || f.kind() == "end" {
			return found, nil
		}
		found = append(found, f)
	}
}

// remedyProtocol is for a host that does not speak as our scripts do.
const remedyProtocol = "check what runs as sshd, as sh and in the login scripts of the user on the host; a host that is not trusted must be set up anew"

func (h *Host) unexpected(f frame) error {
	return &host.Error{Kind: host.KindProtocol, Host: h.Name(), Remedy: remedyProtocol,
		Message: "the host answered " + host.Word(f.kind(), 64) + ", which was not asked"}
}

// damaged is the error of a log on the host that cannot be read.
func (h *Host) damaged(err error) error {
	return &host.Error{Kind: host.KindProtocol, Host: h.Name(), Message: "the record in " + h.config.StateDir + " cannot be read", Err: err}
}

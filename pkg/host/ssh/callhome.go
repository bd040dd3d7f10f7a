// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// accept takes connections that were opened to us until one is the host's: the roles of SSH are as ever, so it is the host that shows its
// key first, and nothing secret is sent to anybody else.
func accept(ctx context.Context, c Config, name string) (*connection, error) {
	invalid := func(message string, err error) error {
		return &host.Error{Kind: host.KindInvalid, Host: name, Message: message, Err: err}
	}
	if c.Jump != nil || len(c.Candidates) > 0 {
		return nil, invalid("a host that connects to us is at no other address, and behind no jump host", nil)
	}
	key, err := c.HostKey.amongSeveral()
	if err != nil {
		return nil, invalid("anybody may connect to us", err)
	}
	newCheck := func() (*keyCheck, error) { return key.checker(c.endpoint(), c.Address, c.Name) }
	check, err := newCheck()
	if err != nil {
		return nil, invalid("the host key to expect cannot be read", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	l, err := c.Auth.read(ctx)
	if err != nil {
		return nil, badCredentials(name, err)
	}
	defer l.close()
	return newCallers(ctx, c, name, l, check, newCheck).meet(cancel)
}

// callersAtOnce is by how much of DialTimeout a caller may be silent before another is met beside: more are kept than say who they are.
const callersAtOnce = 32

// callers are those who have connected to us. Each is met as it comes; only where one is silent, another is met beside it, since anybody
// can connect and say nothing, and the host may be slow.
type callers struct {
	ctx      context.Context
	config   Config
	name     string
	login    *login
	newCheck func() (*keyCheck, error)
	// check is for the key of the next, by what was shown before.
	check *keyCheck

	came chan came
	met  chan met
	// waiting says that the next is waited for, and meeting how many have come and are not met yet.
	waiting bool
	meeting int
	// last is what came of who tells most.
	last error
}

type came struct {
	conn net.Conn
	err  error
}

type met struct {
	conn  *connection
	err   error
	check *keyCheck
}

func newCallers(ctx context.Context, c Config, name string, l *login, check *keyCheck, newCheck func() (*keyCheck, error)) *callers {
	return &callers{ctx: ctx, config: c, name: name, login: l, check: check, newCheck: newCheck, came: make(chan came), met: make(chan met)}
}

// meet returns the connection of the caller that is the host. When it does, all others are closed; cancel ends what they wait for.
func (s *callers) meet(cancel func()) (*connection, error) {
	defer s.end(cancel)
	silent := time.NewTimer(s.config.DialTimeout / callersAtOnce)
	defer silent.Stop()
	s.next()
	for {
		select {
		case next := <-s.came:
			s.waiting = false
			if next.err != nil {
				return s.none(next.err)
			}
			s.begin(next.conn)
			silent.Reset(s.config.DialTimeout / callersAtOnce)
		case one := <-s.met:
			s.meeting--
			if one.err == nil || host.KindOf(one.err) == host.KindAuth { // it is the host that does not let us in
				return one.conn, one.err
			}
			if err := s.learn(one); err != nil {
				return nil, err
			}
			s.next()
		case <-silent.C:
			s.next()
		}
	}
}

// next waits for another caller, where none is waited for.
func (s *callers) next() {
	if s.waiting {
		return
	}
	s.waiting = true
	go func() {
		conn, err := s.config.Accept(s.ctx)
		s.came <- came{conn, err}
	}()
}

func (s *callers) begin(conn net.Conn) {
	s.meeting++
	check := s.check.another()
	go func() {
		conn, err := logIn(s.ctx, s.config, s.name, gather(conn), s.login, check)
		s.met <- met{conn, err, check}
	}()
}

// learn takes in what came of a caller who is not the host. A pinned fingerprint does not tell the type of the key to ask for. Others are
// asked for at the next connection, whosever that is, and all again when none is left.
func (s *callers) learn(one met) (err error) {
	if s.last == nil || host.KindOf(one.err) == host.KindHostKey {
		s.last = one.err
	}
	if s.check = one.check; s.check.tryOthers() {
		return nil
	}
	if s.check, err = s.newCheck(); err != nil {
		return &host.Error{Kind: host.KindInvalid, Host: s.name, Message: "the host key to expect cannot be read", Err: err}
	}
	return nil
}

// none waits for those who are still being met when nobody else can come.
func (s *callers) none(err error) (*connection, error) {
	for ; s.meeting > 0; s.meeting-- {
		one := <-s.met
		if one.err == nil || host.KindOf(one.err) == host.KindAuth {
			s.meeting--
			return one.conn, one.err
		}
		if s.last == nil || host.KindOf(one.err) == host.KindHostKey {
			s.last = one.err
		}
	}
	return nil, notHome(s.name, err, s.last)
}

// end closes whoever else has come.
func (s *callers) end(cancel func()) {
	cancel()
	for ; s.meeting > 0; s.meeting-- {
		if one := <-s.met; one.conn != nil {
			_ = one.conn.close()
		}
	}
	if s.waiting {
		if next := <-s.came; next.conn != nil {
			_ = next.conn.Close()
		}
	}
}

// notHome is the error of a host that has not connected to us; last is what came of somebody who did.
func notHome(name string, err, last error) error {
	e := &host.Error{Kind: host.KindUnreachable, Host: name, Message: "the host has not connected to the manager", Err: &said{err},
		Remedy: "on the host, see systemctl status kubexm-call-home, and that it reaches the manager's address"}
	if last != nil {
		e.Message, e.Err = "none of those who connected to the manager is the host", last
		var one *host.Error
		if errors.As(last, &one) && one.Kind == host.KindHostKey {
			e.Kind = one.Kind
		}
	}
	return e
}

func badCredentials(name string, err error) error {
	return &host.Error{Kind: host.KindAuth, Host: name, Message: "the credentials cannot be used", Err: err,
		Remedy: "correct the SSH credentials of the host"}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"

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
	var last error
	for {
		check.reset()
		raw, err := c.Accept(ctx)
		if err != nil {
			return nil, notHome(name, err, last)
		}
		conn, err := logIn(ctx, c, name, gather(raw), l, check)
		if err == nil || host.KindOf(err) == host.KindAuth { // it is the host that does not let us in
			return conn, err
		}
		if last == nil || host.KindOf(err) == host.KindHostKey {
			last = err
		}
		// A pinned fingerprint does not tell the type of the key to ask for. Others are asked for at the next connection, whosever that is,
		// and all again when none is left.
		if !check.tryOthers() {
			if check, err = newCheck(); err != nil {
				return nil, invalid("the host key to expect cannot be read", err)
			}
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

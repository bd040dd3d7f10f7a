// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// maxCandidates is at how many addresses a host may be: each costs a connection and a handshake, all at once.
const maxCandidates = 16

// addresses are those to dial: Address, then the Candidates, each once.
func (c Config) addresses() ([]string, error) {
	if c.Address == "" {
		return nil, errors.New("no address is given")
	}
	addresses := []string{c.Address}
	for i, address := range c.Candidates {
		if address == "" {
			return nil, fmt.Errorf("candidates[%d] is empty", i)
		}
		if !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	if len(addresses) > maxCandidates {
		return nil, fmt.Errorf("the host may be at %d addresses; %d are dialled at most", len(addresses), maxCandidates)
	}
	return addresses, nil
}

// amongSeveral is k for several addresses: what answers at one may be another machine, so nobody is asked to accept its key.
func (k HostKey) amongSeveral() (HostKey, error) {
	if len(k.Pinned)+len(k.KnownHosts)+len(k.Authorities) == 0 {
		return k, errors.New("the host may be at several addresses, so only a key known beforehand tells it: pin one, " +
			"name a known_hosts file, or name the authority of its certificate")
	}
	if k.AcceptNew != nil {
		k.AcceptNew = Refuse
	}
	return k, nil
}

// dialHop connects to c alone: to the one of its addresses that logs us in first. When it returns, all that was begun at the
// others has ended, except that a jump host is still asked for what it has not answered yet: SSH has no way to take that back.
func dialHop(ctx context.Context, c Config, addresses []string, name string, through *connection) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	l, err := c.Auth.read(ctx)
	if err != nil {
		return nil, badCredentials(name, err)
	}
	defer l.close()
	checks, err := c.checks(addresses)
	if err != nil {
		return nil, &host.Error{Kind: host.KindInvalid, Host: name, Message: "the host key to expect cannot be read", Err: err}
	}
	type result struct {
		at   int
		conn *connection
		err  error
	}
	results := make(chan result)
	for i, address := range addresses {
		there := c
		there.Address = address
		go func() {
			conn, err := dialAt(ctx, there, name, through, l, checks[i])
			results <- result{i, conn, err}
		}()
	}
	var first *connection
	errs := make([]error, len(addresses))
	for range addresses {
		switch r := <-results; {
		case r.err != nil:
			errs[r.at] = r.err
		case first == nil:
			first = r.conn
			cancel() // the others
		default:
			_ = r.conn.close() // the same machine by another way
		}
	}
	if first == nil {
		return nil, nowhere(name, addresses, errs)
	}
	first.through = through
	return first, nil
}

// checks are those of the key shown at each of the addresses.
func (c Config) checks(addresses []string) ([]*keyCheck, error) {
	key := c.HostKey
	if len(addresses) > 1 {
		var err error
		if key, err = key.amongSeveral(); err != nil {
			return nil, err
		}
	}
	checks := make([]*keyCheck, 0, len(addresses))
	for _, address := range addresses {
		there := c
		there.Address = address
		check, err := key.checker(there.endpoint(), address, c.Name)
		if err != nil {
			return nil, err
		}
		checks = append(checks, check)
	}
	return checks, nil
}

// telling are the kinds of what can go wrong at an address, that which says most about the host first: where the right key was
// shown, it is; where another was, some machine is.
var telling = []host.Kind{host.KindAuth, host.KindHostKey, host.KindUnreachable}

// nowhere is the error of a host that is at none of its addresses.
func nowhere(name string, addresses []string, errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	all := &attempts{addresses: addresses, errs: errs}
	e := &host.Error{Kind: host.KindUnreachable, Host: name, Err: all,
		Message: fmt.Sprintf("cannot log in at any of %d addresses", len(addresses))}
	for _, kind := range telling {
		for _, err := range errs {
			var one *host.Error
			if errors.As(err, &one) && one.Kind == kind {
				e.Kind, e.Remedy = kind, one.Remedy
				return e
			}
		}
	}
	return e
}

// attempts are what went wrong at each of several addresses.
type attempts struct {
	addresses []string
	errs      []error
}

// Error is each address and why it is not the host's, in one line.
func (a *attempts) Error() string {
	reasons := make([]string, len(a.errs))
	for i, err := range a.errs {
		reasons[i] = host.Word(a.addresses[i]+": "+reason(err), maxReason)
	}
	return strings.Join(reasons, "; ")
}

// Unwrap returns what went wrong at the addresses.
func (a *attempts) Unwrap() []error { return a.errs }

// maxReason bounds one of several addresses with why it is not the host's, in bytes.
const maxReason = 240

// reason is err without the host's name and, of a network's error, without the addresses.
func reason(err error) string {
	text := err.Error()
	var e *host.Error
	if errors.As(err, &e) {
		text = e.Message
		cause := e.Err
		var network *net.OpError
		if errors.As(cause, &network) {
			cause = network.Err
		}
		if cause != nil {
			text += ": " + cause.Error()
		}
	}
	return text
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// errNoAnswer is why an exchange was given up that the host had not finished in time.
var errNoAnswer = errors.New("the host does not answer")

// noAnswer is the error of a host that was reached and did not finish an exchange ("an observation") within after.
func noAnswer(name, exchange string, after time.Duration) error {
	return &host.Error{
		Kind: host.KindNoAnswer, Host: name,
		Message: fmt.Sprintf("does not answer to %s: it was not complete after %s", exchange, after),
		Remedy: "check the host for what hangs: a disk, a network file system, a process that was stopped " +
			"(ps -eo stat,wchan,args)",
	}
}

// inTime calls f, and ends it when it takes longer than limit. extend gives it the whole time anew.
func (m *hostState) inTime(
	ctx context.Context, exchange string, limit time.Duration, f func(ctx context.Context, extend func()) error,
) error {
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := time.AfterFunc(limit, func() { cancel(errNoAnswer) })
	defer over.Stop()
	err := f(bounded, func() { over.Reset(limit) })
	if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(bounded), errNoAnswer) {
		return err
	}
	m.drop() // what hangs is of no more use
	return noAnswer(m.name, exchange, limit)
}

// observe asks the host, over the connection that there is.
func (m *hostState) observe(ctx context.Context, q host.Query) (seen *host.Facts, err error) {
	err = m.inTime(ctx, "an observation", m.o.ObserveTimeout, func(ctx context.Context, _ func()) (err error) {
		seen, err = m.conn.Observe(ctx, q)
		return err
	})
	return seen, err
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync/atomic"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// counted is a host that counts the exchanges with it.
type counted struct {
	host.Host
	n *atomic.Int64
}

func (c counted) Observe(ctx context.Context, q host.Query) (*host.Facts, error) {
	c.n.Add(1)
	return c.Host.Observe(ctx, q)
}

func (c counted) Begin(ctx context.Context, r host.Run) (host.Session, error) {
	c.n.Add(1)
	s, err := c.Host.Begin(ctx, r)
	if err != nil {
		return nil, err
	}
	return countedSession{s, c.n}, nil
}

type countedSession struct {
	host.Session
	n *atomic.Int64
}

func (c countedSession) Stage(ctx context.Context, blobs []host.Blob) error {
	c.n.Add(1)
	return c.Session.Stage(ctx, blobs)
}

func (c countedSession) StageAhead(ctx context.Context, lots ...[]host.Blob) error {
	c.n.Add(1)
	return c.Session.StageAhead(ctx, lots...)
}

func (c countedSession) Do(ctx context.Context, acts ...host.Act) (*host.Facts, error) {
	c.n.Add(1)
	return c.Session.Do(ctx, acts...)
}

func (c countedSession) Undo(ctx context.Context, s host.Scope, report func(host.Undone)) error {
	c.n.Add(1)
	return c.Session.Undo(ctx, s, report)
}

func (c countedSession) End(ctx context.Context, keep bool) error {
	c.n.Add(1)
	return c.Session.End(ctx, keep)
}

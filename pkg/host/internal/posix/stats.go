// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"io"
	"sync/atomic"
)

// Stats is what a host has cost so far.
type Stats struct {
	// Exchanges counts scripts sent and answered: one per Observe, Do, Undo, Begin, End and Exec, and those of Stage.
	Exchanges int64
	// BytesSent and BytesReceived count payload, before encryption.
	BytesSent, BytesReceived int64
}

type stats struct {
	exchanges, sent, received atomic.Int64
}

func (s *stats) snapshot() Stats {
	return Stats{Exchanges: s.exchanges.Load(), BytesSent: s.sent.Load(), BytesReceived: s.received.Load()}
}

type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n.Add(int64(n))
	return n, err
}

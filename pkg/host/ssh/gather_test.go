// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
)

// What is written is more than both buffers hold, and is read later.
func TestGatheredWritesArriveInOrder(t *testing.T) {
	near, far := net.Pipe()
	c := gather(near)
	defer c.Close()
	sent := make([]byte, 5*gatherLimit+7)
	for i := range sent {
		sent[i] = byte(i / 251)
	}
	go func() {
		for rest := sent; len(rest) > 0; {
			n, err := c.Write(rest[:min(40_000, len(rest))])
			if err != nil {
				t.Error(err)
				return
			}
			rest = rest[n:]
		}
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(far, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Error("what has arrived differs from what was sent")
	}
}

func TestGatheredHoldsNothingWhenAllIsWritten(t *testing.T) {
	near, far := net.Pipe()
	c := gather(near)
	defer c.Close()
	if _, err := c.Write([]byte("a script")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(far, make([]byte, len("a script"))); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buffer != nil {
		t.Errorf("a buffer is held for %d bytes", c.waiting)
	}
}

// A peer that reads nothing lets so much come together, and the writer learns of the end.
func TestGatheredWriterWaits(t *testing.T) {
	near, _ := net.Pipe()
	c := gather(near)
	type result struct {
		n   int
		err error
	}
	written := make(chan result)
	go func() {
		n, err := c.Write(make([]byte, 3*gatherLimit))
		written <- result{n, err}
	}()
	c.mu.Lock()
	for c.waiting < gatherLimit {
		c.changed.Wait()
	}
	c.mu.Unlock()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if r := <-written; r.n > 2*gatherLimit || !errors.Is(r.err, net.ErrClosed) {
		t.Errorf("%d bytes were taken by who reads nothing: %v", r.n, r.err)
	}
}

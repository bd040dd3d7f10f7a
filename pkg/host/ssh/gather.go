// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"net"
	"sync"
)

// gatherLimit is how much a gatheredConn takes before its writer must wait, in bytes.
const gatherLimit = 128 << 10

// gatheredConn writes to its connection what has come together since its last write. x/crypto writes each packet in two
// pieces of which the first has 4 KiB; to write them so costs two system calls and wakes up the peer twice, more than to
// encrypt them. And now the next packet is encrypted while the kernel takes the ones before.
//
// An error of a write is that of the writes after it. What is not yet written when it is closed is lost.
type gatheredConn struct {
	net.Conn
	mu      sync.Mutex
	changed sync.Cond // of what follows
	waiting []byte
	err     error
}

func gather(conn net.Conn) *gatheredConn {
	c := &gatheredConn{Conn: conn}
	c.changed.L = &c.mu
	go c.pass()
	return c
}

// Write implements net.Conn.
func (c *gatheredConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) >= gatherLimit && c.err == nil {
		c.changed.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	c.waiting = append(c.waiting, b...)
	c.changed.Broadcast()
	return len(b), nil
}

// pass writes to the connection what waits, until an error or the end.
func (c *gatheredConn) pass() {
	var taken []byte
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil {
		if len(c.waiting) == 0 {
			c.changed.Wait()
			continue
		}
		taken, c.waiting = c.waiting, taken[:0]
		c.changed.Broadcast()
		c.mu.Unlock()
		_, err := c.Conn.Write(taken)
		c.mu.Lock()
		if c.err == nil {
			c.err = err
		}
	}
	c.changed.Broadcast()
}

// Close implements net.Conn.
func (c *gatheredConn) Close() error {
	c.mu.Lock()
	if c.err == nil {
		c.err = net.ErrClosed
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	return c.Conn.Close()
}

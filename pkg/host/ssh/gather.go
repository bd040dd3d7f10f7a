// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"net"
	"sync"
)

// gatherLimit is how much waits before the writer must wait, too, in bytes: two packets. As much again is being written.
const gatherLimit = 64 << 10

// gathered are buffers of gatherLimit bytes. A connection has one only while something is in it: of a hundred hosts most are waited for.
var gathered = sync.Pool{New: func() any { return new([gatherLimit]byte) }}

// gatheredConn writes to its connection what has come together since its last write. x/crypto writes each packet in two
// pieces of which the first has 4 KiB; to write them so costs two system calls and wakes up the peer twice, more than to
// encrypt them. And now the next packet is encrypted while the kernel takes the ones before.
//
// An error of a write is that of the writes after it. What is not yet written when it is closed is lost.
type gatheredConn struct {
	net.Conn
	mu      sync.Mutex
	changed sync.Cond // of what follows
	buffer  *[gatherLimit]byte
	waiting int // so much of the buffer
	err     error
}

func gather(conn net.Conn) *gatheredConn {
	c := &gatheredConn{Conn: conn}
	c.changed.L = &c.mu
	go c.pass()
	return c
}

// Write implements net.Conn.
func (c *gatheredConn) Write(b []byte) (written int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for written < len(b) {
		for c.waiting == gatherLimit && c.err == nil {
			c.changed.Wait()
		}
		if c.err != nil {
			return written, c.err
		}
		if c.buffer == nil {
			c.buffer = gathered.Get().(*[gatherLimit]byte)
		}
		n := copy(c.buffer[c.waiting:], b[written:])
		written, c.waiting = written+n, c.waiting+n
		c.changed.Broadcast()
	}
	return written, nil
}

// pass writes to the connection what waits, until an error or the end.
func (c *gatheredConn) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil {
		if c.waiting == 0 {
			c.changed.Wait()
			continue
		}
		taken, n := c.buffer, c.waiting
		c.buffer, c.waiting = nil, 0
		c.changed.Broadcast()
		c.mu.Unlock()
		_, err := c.Conn.Write(taken[:n])
		gathered.Put(taken)
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

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delay is a delay line for TCP connections: what goes in comes out later, and as fast as it went in. It stands in
// for the kernel's netem, which small kernels lack.
package delay

import (
	"context"
	"net"
	"sync"
	"time"
)

// capacity is how many pieces of up to pieceSize bytes may be under way in one direction, 64 MiB in all: more than a
// connection of 1 GB/s has under way in 50 ms.
const (
	capacity  = 1024
	pieceSize = 64 << 10
)

// Line forwards connections to one address.
type Line struct {
	listener net.Listener
	target   string
	each     time.Duration

	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// Listen opens a line on the loopback interface to the TCP address target, which delays each direction by each.
func Listen(target string, each time.Duration) (*Line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Line{listener: listener, target: target, each: each}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.wait.Go(l.accept)
	return l, nil
}

// Port is where the line listens.
func (l *Line) Port() int {
	address, _ := l.listener.Addr().(*net.TCPAddr) // what a TCP listener has
	return address.Port
}

// Close ends the line with all its connections.
func (l *Line) Close() error {
	l.cancel()
	err := l.listener.Close()
	l.wait.Wait()
	return err
}

func (l *Line) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.wait.Go(func() { l.forward(near) })
	}
}

// forward ends when both directions have, or the line is closed.
func (l *Line) forward(near net.Conn) {
	defer near.Close()
	var dialer net.Dialer
	far, err := dialer.DialContext(l.ctx, "tcp", l.target)
	if err != nil {
		return // which near sees as the end of its connection
	}
	defer far.Close()
	stop := context.AfterFunc(l.ctx, func() {
		_ = near.Close()
		_ = far.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { l.carry(far, near) })
	both.Go(func() { l.carry(near, far) })
	both.Wait()
}

// piece is some bytes and when they are due.
type piece struct {
	bytes []byte
	due   time.Time
}

// carry copies from one connection to another until the first ends, and passes that end on.
func (l *Line) carry(to, from net.Conn) {
	pieces := make(chan piece, capacity)
	free := make(chan []byte, capacity)
	gone := make(chan struct{})
	go func() {
		defer close(pieces)
		for {
			var buffer []byte
			select {
			case buffer = <-free:
			default:
				buffer = make([]byte, pieceSize)
			}
			n, err := from.Read(buffer)
			if n > 0 {
				select {
				case pieces <- piece{buffer[:n], time.Now().Add(l.each)}:
				case <-gone:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	defer close(gone)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for p := range pieces {
		if left := time.Until(p.due); left > 0 {
			timer.Reset(left)
			<-timer.C
		}
		if _, err := to.Write(p.bytes); err != nil {
			_ = from.Close() // so that the reader ends
			return
		}
		select {
		case free <- p.bytes[:pieceSize]:
		default:
		}
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // of a connection that is gone there is no end to be told
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"io"
	"time"
)

// Transport starts processes on a host, as the user who logged in.
type Transport interface {
	// Start runs command by the user's login shell, without a terminal. The context bounds the start alone.
	Start(ctx context.Context, command string) (Process, error)
	// Latency is the shortest time that a message took there and its answer back, so far. It is the link's: the host has
	// started nothing in between. 0 for this machine.
	Latency() time.Duration
}

// Process runs on the far side. Both outputs must be read to their ends.
type Process interface {
	// Write sends to its standard input, CloseWrite ends that.
	io.Writer
	CloseWrite() error
	Stdout() io.Reader
	Stderr() io.Reader
	// Wait returns the exit code once the process has ended and its output is read; 128+n when signal n ended it. The
	// error says that the process was lost with the connection.
	Wait() (int, error)
	// Close gives the process up: it loses its input and output, and is not waited for.
	Close() error
}

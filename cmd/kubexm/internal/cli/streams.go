// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Interactive is whether a person can be asked: In and Err are terminals.
	Interactive bool
	// Plain is whether what hosts have printed goes to a terminal by Out or Err, and must not control it.
	Plain bool
	// Bars is whether progress may be drawn in place: Err is a terminal.
	Bars bool
}

// Standard are the process's own streams.
func Standard() Streams {
	err := term.IsTerminal(int(os.Stderr.Fd()))
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Plain:       err || term.IsTerminal(int(os.Stdout.Fd())),
		Interactive: err && term.IsTerminal(int(os.Stdin.Fd())), Bars: err && os.Getenv("TERM") != "dumb",
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Job is where and for what a build runs.
type Job struct {
	// Arch is the Go name of the target's architecture (amd64, arm64). The operating system is Linux.
	Arch string
	// Work is an empty scratch directory, which the caller removes.
	Work string
	// Out is an empty directory that receives the files.
	Out string
	// Report is notified of how far the build is: n of m units of the named phase. m is 0 while it is unknown. May be nil.
	Report func(phase string, n, m int)
}

func (j Job) report(phase string, n, m int) {
	if j.Report != nil {
		j.Report(phase, n, m)
	}
}

// CommandError is a tool that failed, with the end of what it wrote to stderr.
type CommandError struct {
	Command string
	Stderr  string
	Err     error
}

func (e *CommandError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("%s: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("%s: %v:\n%s", e.Command, e.Err, e.Stderr)
}

func (e *CommandError) Unwrap() error { return e.Err }

// command is one run of a tool. Lines of stderr go to onLine as they come; the last of them are kept for the error.
type command struct {
	dir    string
	env    []string
	stdout io.Writer
	onLine func(string)
}

func (c command) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout = c.stdout
	// A tool that is asked to end removes its temporary files; compilers that go has started may hold the pipes open
	// after go itself is gone.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	lines := &lineWriter{onLine: c.onLine}
	cmd.Stderr = lines
	err := cmd.Run()
	lines.flush()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return &CommandError{Command: name + " " + firstWord(args), Stderr: strings.Join(lines.tail, "\n"), Err: err}
}

func firstWord(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

const tailLines = 25

// lineWriter cuts what is written to it into lines and remembers the last of them.
type lineWriter struct {
	onLine func(string)
	rest   []byte
	tail   []string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte{'\n'})
		if !found {
			return len(p), nil
		}
		w.add(string(line))
		w.rest = rest
	}
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.add(string(w.rest))
		w.rest = nil
	}
}

func (w *lineWriter) add(line string) {
	if len(w.tail) == tailLines {
		w.tail = w.tail[1:]
	}
	w.tail = append(w.tail, line)
	if w.onLine != nil {
		w.onLine(line)
	}
}

// countLines reads to the end of r.
func countLines(r io.Reader) (int, error) {
	n := 0
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		n++
	}
	return n, s.Err()
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// execFrames is how many frames answer Exec: pid, stdout, end.
const execFrames = 3

// Exec implements host.Host. At most maxBody bytes of each output are kept.
func (h *Host) Exec(ctx context.Context, c host.Command) (*host.Result, error) {
	if err := checkCommand(c); err != nil {
		return nil, h.invalid(c.Key(), err)
	}
	if len(c.Argv) == 0 || c.StdinStream {
		return nil, h.invalid(c.Key(), fmt.Errorf("a command outside of a session needs argv and has no stream"))
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout+h.config.StopGrace) // the far side stops it in time
		defer cancel()
	}
	mark := newMark()
	s := newScript(mark, h.config.StateDir, coreLib)
	s.line("c_put()", "{", printf(c.Stdin.Reveal())+";", "}")
	s.line("k_say pid $$")
	s.line("k_body stdout")
	s.line("c_put | (", "PATH=$USERPATH;", exports(c.Env), "exec timeout -k 5", seconds(c.Timeout), quoteAll(c.Argv), ")")
	s.line("k_say end $?")

	began := time.Now()
	var stderr bytes.Buffer
	p, err := h.start(ctx, s.String(), func(r io.Reader) {
		// What comes after is dropped by the caller; a lost process is known by its end.
		_, _ = io.Copy(&stderr, io.LimitReader(r, maxBody))
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	in := newFrameReader(p.out, mark, execFrames)
	in.bytes = math.MaxInt64 // what a command prints beyond what is kept is dropped
	return h.execResult(ctx, p, in, &stderr, began, c.Timeout)
}

// execResult reads the answer of Exec to a command that began at began and has limit to run (0: no limit), and stops the
// command when ctx ends.
func (h *Host) execResult(
	ctx context.Context, p *process, in *frameReader, stderr *bytes.Buffer, began time.Time, limit time.Duration,
) (*host.Result, error) {
	f, err := in.read()
	if err != nil {
		return nil, p.unread(ctx, err)
	}
	if f.kind() != "pid" || !isPID(f.arg(1)) {
		return nil, h.unexpected(f)
	}
	unhook := context.AfterFunc(ctx, func() {
		h.stop(context.WithoutCancel(ctx), f.arg(1), stopPatience)
		_ = p.Close()
	})
	defer unhook()
	var r host.Result
	for {
		f, err := in.read()
		if ctx.Err() != nil {
			return nil, h.canceled(ctx)
		}
		if err != nil {
			return nil, p.unread(ctx, err)
		}
		switch f.kind() {
		case "stdout":
			r.Stdout = f.body
		case "end":
			if _, lost := p.end(); lost != nil {
				return nil, h.fail(lost)
			}
			r.ExitCode, r.Stderr = int(parseInt(f.arg(1))), stderr.Bytes()
			// See s_ended. The way there and back makes it a little longer here.
			if (r.ExitCode == 124 || r.ExitCode == 137) && limit > 0 && time.Since(began) >= limit {
				return nil, &host.Error{Kind: host.KindTimeout, Host: h.Name(), Message: "took longer than its timeout and was stopped",
					ExitCode: r.ExitCode, Output: host.Text(lastLine(string(r.Stderr)), maxOutput)}
			}
			return &r, nil
		default:
			return nil, h.unexpected(f)
		}
	}
}

// seconds is a duration as timeout(1) takes it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// feed sends a stream to the command of an act, on a channel of its own (see t_feed).
type feed struct {
	proc *process
	done chan struct{}
	// err is why the source could not be read to its end; valid after done.
	err error
}

// openFeed prepares the pipe on the host.
func (h *Host) openFeed(ctx context.Context, sessionPID string) (*feed, error) {
	mark := newMark()
	s := newScript(mark, h.config.StateDir, coreLib, stageLib)
	s.line("T=" + quote(h.runDir()))
	s.call("t_feed", sessionPID)
	p, err := h.start(ctx, s.String(), nil)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer stop()
	f, err := newFrameReader(p.out, mark, 1).read()
	if err != nil {
		return nil, p.unread(ctx, err)
	}
	if f.kind() != "ready" {
		_ = p.Close()
		return nil, h.unexpected(f)
	}
	return &feed{proc: p, done: make(chan struct{})}, nil
}

// piece is how much of a stream has one length line, in bytes. Each costs the host a process.
const piece = 1 << 20

// start sends the source in the background.
func (f *feed) start(open func() (io.ReadCloser, error), progress func(int64)) {
	go func() {
		defer close(f.done)
		f.err = f.send(open, progress)
		if f.err != nil {
			// Ending the input without the end mark stops the command.
			_ = f.proc.CloseWrite()
		}
	}()
}

// errGone says that the command has stopped reading; its own error tells why.
var errGone = errors.New("the command has stopped reading")

func (f *feed) send(open func() (io.ReadCloser, error), progress func(int64)) error {
	source, err := open()
	if err != nil {
		return fmt.Errorf("open the stream: %w", err)
	}
	defer source.Close()
	buffer := make([]byte, piece)
	var sent int64
	for {
		n, err := io.ReadFull(source, buffer)
		if n > 0 {
			if _, err := f.proc.Write([]byte(strconv.Itoa(n) + "\n")); err != nil {
				return errGone
			}
			if _, err := f.proc.Write(buffer[:n]); err != nil {
				return errGone
			}
			if sent += int64(n); progress != nil {
				progress(sent)
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if _, err := io.WriteString(f.proc, "0\n"); err != nil {
				return errGone
			}
			return nil
		case err != nil:
			return fmt.Errorf("read the stream: %w", err)
		}
	}
}

// explain names the source's failure as the cause of the act's, if it was.
func (f *feed) explain(err error) error {
	if f == nil {
		return err
	}
	// The source's failure is what made the act fail, so it came first, if only just.
	grace := time.NewTimer(time.Second)
	defer grace.Stop()
	select {
	case <-f.done:
	case <-grace.C:
		return err
	}
	var e *host.Error
	if f.err != nil && !errors.Is(f.err, errGone) && errors.As(err, &e) {
		e.Message, e.Err = "its input could not be read to the end", f.err
	}
	return err
}

// close gives the stream up. Sending ends with the process.
func (f *feed) close() { _ = f.proc.Close() }

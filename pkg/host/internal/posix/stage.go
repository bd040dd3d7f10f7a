// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// link is what Stage has learned of the way to a host.
type link struct {
	mu sync.Mutex
	// rate in bytes per second; 0 when not measured yet.
	rate float64
}

const (
	// probe is how much goes to measure the link before the rest is planned, in bytes.
	probe = 8 << 20
	// window is how much of it may be under way, unacknowledged, when it has been written, in bytes: that of a channel.
	window = 2 << 20
	// slowZstd and slowGzip are the rates in bytes per second below which compression wins time: what one core of
	// each compresses, less what the host needs besides.
	slowZstd, slowGzip = 80 << 20, 20 << 20
	// farAway is the latency from which one channel's window no longer fills the link.
	farAway = 8 * time.Millisecond
	// maxStripes bounds the channels of one transfer, so that others find some.
	maxStripes = 4
	// stretch is after how much the host begins to write to its disk what has arrived, in bytes.
	stretch = 32 << 20
	// copyBuffer is the memory that a stream takes, in bytes: a packet.
	copyBuffer = 32 << 10
	// streamFrames is how many frames answer a stream: ready, end.
	streamFrames = 2
)

// Stage implements host.Session.
func (s *session) Stage(ctx context.Context, blobs []host.Blob) error {
	blobs, err := s.take(ctx, blobs)
	if err != nil {
		return err
	}
	missing, err := s.missing(ctx, blobs)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := s.send(ctx, missing); err != nil {
		return err
	}
	return s.accept(ctx, missing, s.ask)
}

// missing are those of the blobs, each once, that the host does not have.
func (s *session) missing(ctx context.Context, blobs []host.Blob) ([]host.Blob, error) {
	wanted := make(map[string]host.Blob, len(blobs))
	sc := &script{}
	sc.WriteString("t_missing")
	for _, b := range blobs {
		if err := match("blob", digestName, b.Digest); err != nil {
			return nil, s.host.invalid("content "+b.Name, err)
		}
		if b.Size < 0 || b.Open == nil {
			return nil, s.host.invalid("content "+b.Name, errors.New("it has no size or no source"))
		}
		if _, ok := wanted[b.Digest]; !ok {
			sc.WriteString(" " + b.Digest)
		}
		wanted[b.Digest] = b
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	sc.WriteString("\n")
	var missing []host.Blob
	_, err := s.ask(ctx, sc.String(), func(f frame) error {
		b, ok := wanted[f.arg(1)]
		if f.kind() != "missing" || !ok {
			return s.host.unexpected(f)
		}
		missing = append(missing, b)
		return nil
	})
	return missing, err
}

func (l *link) measured(rate float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate
}

// known is the rate, or 0.
func (l *link) known() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rate
}

// part is some bytes of a blob.
type part struct {
	blob           host.Blob
	offset, length int64
}

// name of the content in the staging area.
func (p part) name() string { return strings.TrimPrefix(p.blob.Digest, "sha256:") }

// send transfers all blobs: first as they are until the link's rate is known, then in the way that suits it. It may go on beside acts.
func (s *session) send(ctx context.Context, blobs []host.Blob) error {
	var todo []part
	var total int64
	for _, b := range blobs {
		if b.Size > 0 {
			todo = append(todo, part{b, 0, b.Size})
			total += b.Size
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// When one stream fails, the others stop.
	group, ctx := errgroup.WithContext(ctx)
	// The first stream, open already, goes on with what stays plain.
	var first *stream
	rate := s.host.link.known()
	if rate == 0 && total > 2*probe {
		var head []part
		head, todo = split(todo, probe)
		var err error
		if first, err = s.open(ctx, ""); err != nil {
			return err
		}
		began := time.Now()
		if err := first.put(head); err != nil {
			return first.close(err)
		}
		// What the window lets go ahead may not have arrived yet.
		rate = (probe - window) / time.Since(began).Seconds()
		s.host.link.measured(rate)
	}
	tool := s.compressor(rate)
	var plain, packed []part
	for _, p := range todo {
		if tool != "" && compressible(p) {
			packed = append(packed, p)
		} else {
			plain = append(plain, p)
		}
	}
	stripes := s.stripes(plain)
	if first != nil {
		var mine []part
		if len(stripes) > 0 {
			mine, stripes = stripes[0], stripes[1:]
		}
		group.Go(func() error { return first.close(first.put(mine)) })
	}
	for _, stripe := range stripes {
		group.Go(func() error { return s.stream(ctx, stripe, "") })
	}
	if len(packed) > 0 {
		group.Go(func() error { return s.stream(ctx, packed, tool) })
	}
	return group.Wait()
}

// compressor is the tool that wins time on a link of this rate, or "".
func (s *session) compressor(rate float64) string {
	switch {
	case rate == 0:
		return ""
	case rate < slowZstd && s.tools["zstd"]:
		return "zstd"
	case rate < slowGzip && s.tools["gzip"]:
		return "gzip"
	}
	return ""
}

// split cuts the first n bytes off parts.
func split(parts []part, n int64) (head, rest []part) {
	for i, p := range parts {
		if p.length > n {
			if n > 0 {
				head = append(head, part{p.blob, p.offset, n})
			}
			return head, append([]part{{p.blob, p.offset + n, p.length - n}}, parts[i+1:]...)
		}
		head = append(head, p)
		n -= p.length
	}
	return head, nil
}

// stripes deals parts out to as many streams as the link's length asks for. Only sources that can seek are cut.
func (s *session) stripes(parts []part) [][]part {
	if len(parts) == 0 {
		return nil
	}
	n := int64(min(maxStripes, s.host.transport.Latency()/farAway+1))
	var total int64
	for _, p := range parts {
		total += p.length
	}
	if n == 1 || total < 4*probe {
		return [][]part{parts}
	}
	var all [][]part
	for len(parts) > 0 {
		var stripe []part
		stripe, parts = split(parts, (total+n-1)/n)
		all = append(all, stripe)
	}
	return all
}

// stream sends parts by one channel, compressed by tool if that is not "".
func (s *session) stream(ctx context.Context, parts []part, tool string) error {
	st, err := s.open(ctx, tool)
	if err != nil {
		return err
	}
	return st.close(st.put(parts))
}

// stream is a channel to a shell that stores what it is sent.
type stream struct {
	ctx    context.Context
	host   *Host
	mark   string // of the session
	proc   *process
	in     *frameReader
	pack   io.WriteCloser
	unhook func() bool
}

// open starts a stream. It ends with ctx, or by close.
func (s *session) open(ctx context.Context, tool string) (*stream, error) {
	mark := newMark()
	sc := newScript(mark, s.host.config.StateDir, coreLib, stageLib)
	sc.line("k_say ready")
	sc.line("t_widen") // while the first bytes are on their way
	if tool == "" {
		sc.line("t_receive")
	} else {
		sc.call("t_unpack", tool)
	}
	sc.line("k_say end $?")
	p, err := s.host.start(ctx, sc.String(), nil)
	if err != nil {
		return nil, err
	}
	st := &stream{ctx: ctx, host: s.host, mark: s.mark, proc: p, in: newFrameReader(p.out, mark, streamFrames)}
	st.unhook = context.AfterFunc(ctx, func() { _ = p.Close() })
	f, err := st.in.read()
	if err == nil && f.kind() == "ready" {
		st.pack, err = newPacker(p, tool)
	} else {
		err = p.unread(ctx, err)
	}
	if err != nil {
		st.giveUp()
		return nil, err
	}
	return st, nil
}

func (st *stream) giveUp() {
	st.unhook()
	_ = st.proc.Close()
}

// put sends parts as t_receive takes them. Its error is for close.
func (st *stream) put(parts []part) error {
	buffer := make([]byte, copyBuffer)
	for _, p := range parts {
		if err := sendPart(st.ctx, st.pack, st.mark, p, buffer); err != nil {
			return err
		}
	}
	return nil
}

// close ends the stream, of which put has returned sendErr, and says how it went.
func (st *stream) close(sendErr error) error {
	defer st.giveUp()
	var broken *sourceError
	if errors.As(sendErr, &broken) && st.ctx.Err() == nil {
		return &host.Error{Kind: host.KindCorrupt, Host: st.host.Name(), Change: "content " + broken.name, Message: "its source cannot be read with the declared size and digest", Err: broken.err}
	}
	// What fails from here on is the host's to explain. It may also have been quicker: when it has read the end, its input
	// cannot be closed any more, and all is well.
	if sendErr == nil {
		if _, err := io.WriteString(st.pack, "end\n"); err == nil && st.pack.Close() == nil {
			_ = st.proc.CloseWrite()
		}
	}
	f, err := st.in.read()
	switch {
	case st.ctx.Err() != nil:
		return st.host.canceled(st.ctx)
	case err != nil:
		return st.proc.unread(st.ctx, err)
	case f.kind() != "end":
		return st.host.unexpected(f)
	case f.arg(1) != "0": // which is said of a stream that has come to its end
		_, _ = st.proc.end() // for all of standard error
		return st.host.commandError("", "the host cannot store what was sent", int(parseInt(f.arg(1))), st.proc.said())
	}
	return nil
}

// sourceError says that a blob's source failed us, not the host.
type sourceError struct {
	name string
	err  error
}

func (e *sourceError) Error() string { return "content " + e.name + ": " + e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// sendPart writes a part as t_receive takes it. A stretch is a whole number of buffers. The file that it goes to has the session's
// mark in its name: a shell of a session that was cut may still write, and must not write to this session's.
func sendPart(ctx context.Context, to io.Writer, mark string, p part, buffer []byte) error {
	source, err := p.open()
	if err != nil {
		return &sourceError{p.blob.Name, err}
	}
	defer source.Close()
	stop := context.AfterFunc(ctx, func() { _ = source.Close() }) // one that has no more to give yet
	defer stop()
	for left := p.length; left > 0; {
		if done := p.length - left; done%stretch == 0 {
			if _, err := fmt.Fprintf(to, "%s.%s %d %d\n", p.name(), mark, p.offset+done, min(left, stretch)); err != nil {
				return err
			}
		}
		n, err := io.ReadFull(source, buffer[:min(left, int64(len(buffer)))])
		if err != nil {
			return &sourceError{p.blob.Name, fmt.Errorf("%d of %d bytes: %w", p.length-left+int64(n), p.length, err)}
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// open returns the blob's content from the part's offset on.
func (p part) open() (io.ReadCloser, error) {
	source, err := p.blob.Open()
	if err != nil || p.offset == 0 {
		return source, err
	}
	if seeker, ok := source.(io.Seeker); ok {
		_, err = seeker.Seek(p.offset, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, source, p.offset)
	}
	if err != nil {
		_ = source.Close()
		return nil, err
	}
	return source, nil
}

// asking sends a script to a shell with the library, hands each frame of its answer to take, and returns the exit code.
type asking func(ctx context.Context, script string, take func(frame) error) (int, error)

// accept has the host verify what has arrived. Content that is not what it should be is read again here, to tell a corrupt
// source from a corrupt transfer.
func (s *session) accept(ctx context.Context, blobs []host.Blob, ask asking) error {
	if len(blobs) == 0 {
		return nil
	}
	byName := make(map[string]host.Blob, len(blobs))
	sc := &script{}
	sc.WriteString("t_accept " + s.mark)
	for _, b := range blobs {
		name := part{blob: b}.name()
		byName[name] = b
		sc.WriteString(" " + name)
	}
	sc.WriteString("\n")
	var failures []error
	code, err := ask(ctx, sc.String(), func(f frame) error {
		b, ok := byName[f.arg(1)]
		switch {
		case ok && f.kind() == "corrupt":
			failures = append(failures, s.host.corrupt(b))
		case !ok || f.kind() != "accepted":
			return s.host.unexpected(f)
		}
		return nil
	})
	if err == nil && code != 0 && len(failures) == 0 {
		err = s.host.commandError("", "the host cannot store what was sent", code, s.proc.said())
	}
	return errors.Join(append(failures, err)...)
}

func (h *Host) corrupt(b host.Blob) error {
	e := &host.Error{Kind: host.KindCorrupt, Host: h.Name(), Change: "content " + b.Name,
		Message: "arrived with another digest than " + b.Digest, Remedy: "try again; if it stays so, check the host's disk and memory"}
	found, err := digestOf(b)
	switch {
	case err != nil:
		e.Err = err
	case found != b.Digest:
		e.Message = "its source has the digest " + found + " instead of " + b.Digest
		e.Remedy = "fetch the artifact again, or correct its declared digest"
	}
	return e
}

func digestOf(b host.Blob) (string, error) {
	source, err := b.Open()
	if err != nil {
		return "", err
	}
	defer source.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, source); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"maps"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// ahead is content that is sent while acts go on.
type ahead struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing is sent any more
	// lots are those of the digests that Stage has not asked for yet.
	lots map[string]*lot
}

// lot is the content that one Stage will ask for, and its digests, of which those that are not missing are staged already.
type lot struct {
	digests map[string]bool
	missing []host.Blob
	sent    chan struct{} // closed when all of it is staged, or will not be
	err     error         // to be read after sent
}

// StageAhead implements host.Session.
func (s *session) StageAhead(ctx context.Context, lots ...[]host.Blob) error {
	s.stopAhead(ctx)
	a := &ahead{ended: make(chan struct{}), lots: map[string]*lot{}}
	var all []host.Blob
	var todo []*lot
	for _, blobs := range lots {
		l := &lot{digests: map[string]bool{}, sent: make(chan struct{})}
		for _, b := range blobs {
			// Content that two acts want is gone from the staging area after the first: the second has to ask.
			if a.lots[b.Digest] == nil {
				a.lots[b.Digest], l.digests[b.Digest] = l, true
				all = append(all, b)
			}
		}
		todo = append(todo, l)
	}
	missing, err := s.missing(ctx, all)
	if err != nil {
		return err
	}
	for _, b := range missing {
		l := a.lots[b.Digest]
		l.missing = append(l.missing, b)
	}
	ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.ahead = a
	go func() {
		defer close(a.ended)
		defer a.cancel()
		for _, l := range todo {
			l.err = s.sendAhead(ctx, l.missing)
			close(l.sent)
		}
	}()
	return nil
}

// sendAhead stages blobs beside what the session's worker does.
func (s *session) sendAhead(ctx context.Context, blobs []host.Blob) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := s.send(ctx, blobs); err != nil {
		return err
	}
	return s.accept(ctx, blobs, s.host.aside)
}

// aside asks a shell of its own. What it has begun is waited for when ctx ends, for a while: it should not work on in what an undo
// removes.
func (h *Host) aside(ctx context.Context, asked string, take func(frame) error) (int, error) {
	mark := newMark()
	sc := newScript(mark, h.config.StateDir, coreLib, stageLib)
	sc.line("(", asked, ")")
	sc.line("k_say end $?")
	p, err := h.start(ctx, sc.String(), nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = p.Close() }()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(h.config.StopGrace, func() { _ = p.Close() }) })
	defer stop()
	var first error
	for in := newFrameReader(p.out, mark, framesFor(sc.String())); ; {
		f, err := in.read()
		switch {
		case err != nil:
			return 0, p.unread(ctx, err)
		case f.kind() == "end":
			return int(parseInt(f.arg(1))), first
		}
		if err := take(f); err != nil && first == nil {
			first = err
		}
	}
}

// take waits for what of the blobs is sent ahead, and returns the others, and those with which that went wrong.
func (s *session) take(ctx context.Context, blobs []host.Blob) (rest []host.Blob, err error) {
	if s.ahead == nil {
		return blobs, nil
	}
	staged := map[string]bool{}
	for _, b := range blobs {
		l := s.ahead.lots[b.Digest]
		if l == nil {
			continue
		}
		select {
		case <-l.sent:
		case <-ctx.Done():
			return nil, s.host.canceled(ctx)
		}
		for digest := range l.digests {
			delete(s.ahead.lots, digest)
		}
		if l.err == nil {
			maps.Copy(staged, l.digests)
		}
	}
	for _, b := range blobs {
		if !staged[b.Digest] {
			rest = append(rest, b)
		}
	}
	return rest, nil
}

// stopAhead ends what is sent ahead, and waits until it has ended, or ctx.
func (s *session) stopAhead(ctx context.Context) {
	if s.ahead == nil {
		return
	}
	s.ahead.cancel()
	select {
	case <-s.ahead.ended:
	case <-ctx.Done():
	}
	s.ahead = nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// frame is one piece of an answer: a line "@<mark> - <words>", or "@<mark> + <words>" and the bytes up to the next such
// line. The mark is drawn anew for each process and never appears in an argv, so no content can imitate it.
type frame struct {
	words []string
	body  []byte
}

func (f frame) kind() string { return f.words[0] }

// arg returns word i, counted from the kind, or "".
func (f frame) arg(i int) string {
	if i < len(f.words) {
		return f.words[i]
	}
	return ""
}

// maxBody is the most that is kept of a frame's body; the rest is read and dropped. The largest that is asked for are the two
// logs of a host's memory, which come in one frame with the system's files.
const maxBody = 2*maxFile + 1<<20

// What a host may say in one answer. A host that says more is broken or hostile, and would fill the memory that it shares with
// all others.
const (
	// baseFrames is what no question asks more of than its own length does: see framesFor.
	baseFrames = 4096
	// maxWaiting is how often a host may say that it waits for an act that a connection left behind: each second twice.
	maxWaiting = 16 << 10
	// maxAnswer is the most bytes of one answer: both logs at their longest, and what contents and commands may add.
	maxAnswer = 3 * maxFile
	// maxHead is the longest head of a frame, in bytes: a record holds a path or a command's words. Few are longer than a reader's buffer.
	maxHead = 64 << 10
	// maxGreeting is how much a login shell may print before our shell greets us, in bytes.
	maxGreeting = 1 << 20
)

// framesFor is how many frames may answer a script. Whatever is asked has a name or a call of many bytes in the script, some
// more than once, and is answered by four frames at most.
func framesFor(script string) int { return baseFrames + len(script)/8 }

// excess is the error of an answer that is larger than any that was asked for.
type excess struct{ what string }

func (e *excess) Error() string { return e.what }

// newMark returns 128 bits that nobody can guess.
func newMark() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, says crypto/rand
	return hex.EncodeToString(b[:])
}

type frameReader struct {
	in   *bufio.Reader
	mark []byte
	next []string // header that ended the body before it
	body bool     // next has a body
	// frames and bytes are what is left of an answer's bounds; keep is how much of a body is kept.
	frames int
	bytes  int64
	keep   int
}

// newFrameReader reads one answer, to a question of which at most so many frames can come, or the first of many: see allow.
func newFrameReader(r io.Reader, mark string, frames int) *frameReader {
	return &frameReader{
		in: bufio.NewReader(r), mark: []byte("@" + mark + " "), frames: frames, bytes: maxAnswer, keep: maxBody,
	}
}

// allow sets the bounds of the next answer.
func (r *frameReader) allow(frames int) { r.frames, r.bytes = frames, maxAnswer }

// read returns the next frame, and io.EOF after the last. What comes before the first (a greeting of the login shell)
// is dropped.
func (r *frameReader) read() (frame, error) {
	if r.next == nil {
		if _, err := r.until(false); err != nil {
			return frame{}, err
		}
	}
	if r.frames--; r.frames < 0 {
		return frame{}, &excess{"it has more frames than were asked for"}
	}
	f := frame{words: r.next}
	withBody := r.body
	r.next = nil
	if !withBody {
		return f, nil
	}
	body, err := r.until(true)
	f.body = body
	if err != nil && !errors.Is(err, io.EOF) {
		return f, err
	}
	if err != nil {
		return f, io.ErrUnexpectedEOF
	}
	return f, nil
}

// until reads up to and with the next header line and returns what came before, if keep.
func (r *frameReader) until(keep bool) ([]byte, error) {
	var body []byte
	start := true // at the start of a line
	for {
		line, err := r.line(start)
		if r.bytes -= int64(len(line)); r.bytes < 0 {
			return nil, &excess{"it has more than " + strconv.Itoa(maxAnswer>>20) + " MiB"}
		}
		whole := err == nil
		if start && whole && bytes.HasPrefix(line, r.mark) {
			words := strings.Fields(string(line[len(r.mark):]))
			if len(words) >= 2 && (words[0] == "+" || words[0] == "-") {
				r.next, r.body = words[1:], words[0] == "+"
				// The newline before a header belongs to the header.
				return bytes.TrimSuffix(body, []byte("\n")), nil
			}
		}
		if keep && len(body) < r.keep {
			body = append(body, line[:min(len(line), r.keep-len(body))]...)
		}
		start = whole
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return body, err
		}
	}
}

// line returns the next line, or a piece of one that is longer than what is buffered. A header comes as a whole, up to maxHead.
func (r *frameReader) line(start bool) ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if !start || !errors.Is(err, bufio.ErrBufferFull) || !bytes.HasPrefix(line, r.mark) {
		return line, err
	}
	head := slices.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) && len(head) < maxHead {
		line, err = r.in.ReadSlice('\n')
		head = append(head, line...)
	}
	return head, err
}

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

// maxBody is the most that is kept of a frame's body; the rest is read and dropped.
const maxBody = 16 << 20

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
}

func newFrameReader(r io.Reader, mark string) *frameReader {
	return &frameReader{in: bufio.NewReaderSize(r, 64<<10), mark: []byte("@" + mark + " ")}
}

// read returns the next frame, and io.EOF after the last. What comes before the first (a greeting of the login shell)
// is dropped.
func (r *frameReader) read() (frame, error) {
	if r.next == nil {
		if _, err := r.until(false); err != nil {
			return frame{}, err
		}
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
		line, err := r.in.ReadSlice('\n')
		whole := err == nil
		if start && whole && bytes.HasPrefix(line, r.mark) {
			words := strings.Fields(string(line[len(r.mark):]))
			if len(words) >= 2 && (words[0] == "+" || words[0] == "-") {
				r.next, r.body = words[1:], words[0] == "+"
				// The newline before a header belongs to the header.
				return bytes.TrimSuffix(body, []byte("\n")), nil
			}
		}
		if keep && len(body) < maxBody {
			body = append(body, line...)
		}
		start = whole
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return body, err
		}
	}
}

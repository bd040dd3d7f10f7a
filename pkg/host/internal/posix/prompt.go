// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"bytes"
	"io"
)

// promptReader passes on what it reads but for the prompt, and calls asked for each of that.
type promptReader struct {
	in     io.Reader
	prompt string
	asked  func()
	ready  []byte // to be passed on
	held   []byte // may be the beginning of a prompt
	err    error
}

func (r *promptReader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil {
			if len(r.held) == 0 {
				return 0, r.err
			}
			r.ready, r.held = r.held, nil
			break
		}
		var buffer [4 << 10]byte
		n, err := r.in.Read(buffer[:])
		r.err = err
		r.take(buffer[:n])
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

func (r *promptReader) take(b []byte) {
	r.held = append(r.held, b...)
	for {
		before, after, found := bytes.Cut(r.held, []byte(r.prompt))
		if !found {
			break
		}
		r.ready = append(r.ready, before...)
		r.held = bytes.Clone(after)
		r.asked()
	}
	keep := min(len(r.held), len(r.prompt)-1)
	for !bytes.HasPrefix([]byte(r.prompt), r.held[len(r.held)-keep:]) {
		keep--
	}
	r.ready = append(r.ready, r.held[:len(r.held)-keep]...)
	r.held = bytes.Clone(r.held[len(r.held)-keep:])
}

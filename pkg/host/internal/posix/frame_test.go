// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFrames(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	input := "Welcome to host\n@M is not a head\n" +
		"\n@M - clock 12.5\n" +
		"\n@M + body a b\nline\n@N + imitation\n@M\nno newline at the end" +
		"\n@M + body empty\n" +
		"\n@M + body long\n" + long + "\n\n" +
		"\n@M - record " + long[:60_000] + "\n" +
		"\n@M + body nearly\n@M - record " + long + "\n" +
		"\n@M - end 0\n"
	for name, r := range map[string]io.Reader{"at once": strings.NewReader(input), "by bytes": iotest.OneByteReader(strings.NewReader(input))} {
		t.Run(name, func(t *testing.T) {
			frames := newFrameReader(r, "M", 1000)
			for _, want := range []struct{ head, body string }{
				{"clock 12.5", ""}, {"body a b", "line\n@N + imitation\n@M\nno newline at the end"}, {"body empty", ""}, {"body long", long + "\n\n"},
				{"record " + long[:60_000], ""}, {"body nearly", "@M - record " + long + "\n"}, {"end 0", ""},
			} {
				f, err := frames.read()
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(f.words, " "); got != want.head {
					t.Errorf("head %.60q (%d bytes), want %.60q (%d)", got, len(got), want.head, len(want.head))
				}
				if got := string(f.body); got != want.body {
					t.Errorf("body of %.60s: %.60q (%d bytes), want %d", want.head, got, len(got), len(want.body))
				}
			}
			if _, err := frames.read(); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

func TestFramesCut(t *testing.T) {
	frames := newFrameReader(strings.NewReader("\n@M + body\nhalf"), "M", 1000)
	if _, err := frames.read(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a body that ends early: %v", err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add("\n@M - a\n\n@M + b\nbody\n@M - end\n")
	f.Add("\n@M \n@M + \n")
	f.Fuzz(func(t *testing.T, input string) {
		frames := newFrameReader(strings.NewReader(input), "M", 1000)
		for range len(input) + 1 {
			got, err := frames.read()
			if err != nil {
				return
			}
			_ = got.kind()
			_ = got.arg(3)
		}
		t.Error("more frames than bytes")
	})
}

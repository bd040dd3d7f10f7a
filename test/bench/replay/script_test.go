// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestReadScript(t *testing.T) {
	for sent, want := range map[string]string{
		"5\nhello":     "hello",
		"\n\n5\nhello": "hello", // the client has waited, and said that it lives
	} {
		if got, err := readScript(bufio.NewReader(strings.NewReader(sent))); err != nil || got != want {
			t.Errorf("%q: got %q, %v", sent, got, err)
		}
	}
	for _, sent := range []string{"", "\n", "hello\n", "-1\n", "5\nhell"} {
		if got, err := readScript(bufio.NewReader(strings.NewReader(sent))); err == nil {
			t.Errorf("%q: got %q and no error", sent, got)
		}
	}
}

// Played hosts are asked in other runs than the recorded one was.
func TestQuestionsOfTwoRunsAreOne(t *testing.T) {
	first := names{host: "host-1"}.question("begin host-1 20261121-235959-0123abcd at 2026-11-21T23:59:59Z")
	second := names{host: "host-2"}.question("begin host-2 20261122-000001-dcba3210 at 2026-11-22T00:00:01.5Z")
	if first != second {
		t.Errorf("%q and %q differ", first, second)
	}
}

// Who observes a played host much later finds no clock that is behind.
func TestClocksGoOn(t *testing.T) {
	const then, up = 1700000000.5, 100.25
	said := names{mark: "m"}.special("a\n@m - clock 1700000000.500000000 100.25\nb 1700000000.500000000\n")
	var clock, since float64
	if n, err := fmt.Sscanf(said, "a\n@m - clock %f %f\nb 1700000000.500000000\n", &clock, &since); n != 2 {
		t.Fatalf("%q: %v", said, err)
	}
	if late := float64(time.Now().UnixMicro())/1e6 - clock; late < 0 || late > 60 {
		t.Errorf("the clock is %g s behind", late)
	}
	if off := (since - up) - (clock - then); off < -0.1 || off > 0.1 {
		t.Errorf("the clocks are %g s apart", off)
	}
}

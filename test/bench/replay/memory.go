// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// turn is what a host says until it is somebody else's turn.
type turn struct {
	// stdout of the turn; kind is the word of the line that ends it, or "" at the end of the process.
	stdout, kind string
	// stderr and code are those of the process, when it ended with the turn.
	stderr string
	code   int
}

// Memory is what a host has said, by what it was asked, in the order in which it was asked the same.
type Memory struct {
	mu    sync.Mutex
	turns map[string][]turn
}

// NewMemory returns a Memory of nothing.
func NewMemory() *Memory { return &Memory{turns: map[string][]turn{}} }

func (m *Memory) keep(question string, t turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns[question] = append(m.turns[question], t)
}

// recall returns the answer that came when the question had been asked so many times before; who asks more often than
// that gets the last one again.
func (m *Memory) recall(question string, before int) (turn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.turns[question]
	if len(known) == 0 {
		return turn{}, fmt.Errorf("the host that was recorded was never asked this: %.2000q", question)
	}
	return known[min(before, len(known)-1)], nil
}

// names are what differs between two hosts, or two moments, that ask and answer the same: the host's name, the mark of
// the process and the prefix that disguises paths in one question.
type names struct{ host, mark, prefix string }

var (
	markOf = regexp.MustCompile(`(?m)^N='?([0-9a-f]{32})`)
	// A way to nowhere, see pkg/host/internal/posix.
	prefixOf = regexp.MustCompile(`(?:/\.?){48}`)
	// A time of RFC 3339, or in seconds with nine decimals.
	timeOf = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|\d{10}\.\d{9}`)
	// What runs are called by: see pkg/engine.
	runOf = regexp.MustCompile(`\d{8}-\d{6}-[0-9a-f]{8}`)
	// The time of day and that since the host was started, in seconds.
	clockOf = regexp.MustCompile(`(?m)^(@\S+ - clock )(\d+\.\d{9}) (\d+\.\d\d)$`)
	// Whether a stream is compressed depends on how fast the link was found to be.
	unpackOf = regexp.MustCompile(`(?m)^t_unpack \w+$`)
)

const holeHost, holeMark, holePrefix, holeTime, holeRun = "\x00host\x00", "\x00mark\x00", "\x00prefix\x00", "\x00time\x00", "\x00run\x00"

// general takes the names out of a text.
func (n names) general(text string) string {
	for _, r := range []struct{ name, hole string }{{n.mark, holeMark}, {n.prefix, holePrefix}, {n.host, holeHost}} {
		if r.name != "" {
			text = strings.ReplaceAll(text, r.name, r.hole)
		}
	}
	return text
}

// question is a script without what differs from one time to the next.
func (n names) question(script string) string {
	text := runOf.ReplaceAllString(timeOf.ReplaceAllString(n.general(script), holeTime), holeRun)
	return unpackOf.ReplaceAllString(text, "t_receive")
}

// learn finds the names that a script brings: a mark for the process with its first, a prefix with any.
func (n *names) learn(script string, first bool) {
	if found := markOf.FindStringSubmatch(script); first && found != nil {
		n.mark = found[1]
	}
	n.prefix = prefixOf.FindString(script)
}

// special puts the names back, and has the host's clocks go on since it was recorded.
func (n names) special(text string) string {
	text = strings.NewReplacer(holeHost, n.host, holeMark, n.mark, holePrefix, n.prefix).Replace(text)
	return clockOf.ReplaceAllStringFunc(text, func(line string) string {
		said := clockOf.FindStringSubmatch(line)
		then, _ := strconv.ParseFloat(said[2], 64) // numbers, by the expression
		up, _ := strconv.ParseFloat(said[3], 64)
		now := float64(time.Now().UnixMicro()) / 1e6
		return fmt.Sprintf("%s%.9f %.2f", said[1], now, up+now-then)
	})
}

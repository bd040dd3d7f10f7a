// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// The logs in the state directory (see the package's comment).
const (
	journalFile = "journal"
	undoFile    = "undo.log"
)

// lineEnd ends every whole line of a log.
const lineEnd = ";"

// entry is one line "+" of the undo log: what was there before, or where in undo/<seq> it is kept.
type entry struct {
	seq             int
	run, node, task string
	// kind says how to undo it: see undo.sh, which has a function of the name for each.
	kind string
	// word and target make the key: "file /etc/hosts".
	word, target string
	data         []string
}

func (e entry) key() string { return e.word + " " + e.target }

// shown and shownNode are for people: the log is the host's, and may say anything.
func (e entry) shown() string     { return host.Word(e.key(), maxName) }
func (e entry) shownNode() string { return host.Word(e.node, maxName) }

func (e entry) within(s host.Scope) bool { return s.Selects(e.run, e.task, e.node) }

// ofUnit reports whether the entry is about what a unit does.
func (e entry) ofUnit() bool { return e.kind == "unit" || e.kind == "left" }

// saysLess reports whether the entry says but a part of what others of its key say: mode and owner of a file, or that a unit ran. It
// stands for its like alone.
func (e entry) saysLess() bool { return e.kind == "meta" || e.kind == "left" }

// takesBack reports whether the undo of the entry takes what is in undo/<seq> to where it was, so that it is there no more.
func (e entry) takesBack() bool {
	return e.kind == "kept" || e.kind == "claimed_kept" || e.kind == "block"
}

// within are the entries of the scope, the last first.
func (l *logs) within(s host.Scope) []entry {
	since := 0
	if s.From != "" {
		since = lastRun(l.entries, s.From)
	}
	if since < 0 {
		return nil
	}
	var chosen []entry
	for _, e := range slices.Backward(l.entries[since:]) {
		if e.within(s) {
			chosen = append(chosen, e)
		}
	}
	return chosen
}

// lastRun is the position of the first entry of the last run in which node has any, by that node; -1 if it has none.
func lastRun(entries []entry, node string) int {
	first := -1
	for i, e := range slices.Backward(entries) {
		switch {
		case e.node != node:
		case first >= 0 && entries[first].run != e.run:
			return first
		default:
			first = i
		}
	}
	return first
}

// parseEntry reads the fields of a line after its "+".
func parseEntry(fields []string) (entry, error) {
	if len(fields) < 7 {
		return entry{}, fmt.Errorf("undo entry of %d fields", len(fields))
	}
	var e entry
	var err error
	if e.seq, err = strconv.Atoi(fields[0]); err != nil || e.seq < 1 {
		return entry{}, fmt.Errorf("undo entry %q has no number", fields[0])
	}
	for i, to := range []*string{&e.run, &e.node, &e.task, &e.kind, &e.word, &e.target} {
		if *to, err = unfield(fields[i+1]); err != nil {
			return entry{}, fmt.Errorf("undo entry %d: %w", e.seq, err)
		}
	}
	for _, f := range fields[7:] {
		value, err := unfield(f)
		if err != nil {
			return entry{}, fmt.Errorf("undo entry %d: %w", e.seq, err)
		}
		e.data = append(e.data, value)
	}
	return e, nil
}

// line is how the entry stands in the log.
func (e entry) line() string {
	fields := []string{"+", strconv.Itoa(e.seq)}
	for _, s := range append([]string{e.run, e.node, e.task, e.kind, e.word, e.target}, e.data...) {
		fields = append(fields, field(s))
	}
	return strings.Join(append(fields, lineEnd), " ") + "\n"
}

// logs is what a host remembers.
type logs struct {
	journal map[string]host.JournalEntry
	// entries in the order in which they were made.
	entries []entry
	lastSeq int
}

// maxEntries is how many entries either log may have that count: a hundred times what the largest cluster's host has.
const maxEntries = 1 << 16

func parseLogs(journal, undo []byte) (*logs, error) {
	l := &logs{journal: map[string]host.JournalEntry{}}
	for fields := range wholeLines(journal) {
		if err := l.addJournal(fields); err != nil {
			return nil, err
		}
		if len(l.journal) > maxEntries {
			return nil, fmt.Errorf("journal: it has more than %d entries", maxEntries)
		}
	}
	// By number, how many entries there were when it was dropped: one pass drops all.
	dropped := map[int]int{}
	for fields := range wholeLines(undo) {
		if err := l.addUndo(fields, dropped); err != nil {
			return nil, err
		}
		if len(l.entries) > maxLines || len(dropped) > maxLines {
			return nil, fmt.Errorf("undo log: it has more than %d lines", maxLines)
		}
	}
	var live []entry
	for i, e := range l.entries {
		if i >= dropped[e.seq] {
			live = append(live, e)
		}
	}
	if l.entries = live; len(live) > maxEntries {
		return nil, fmt.Errorf("undo log: it has more than %d entries", maxEntries)
	}
	return l, nil
}

// maxLines is how many lines of either sort an undo log may have that was not rewritten yet (see compact).
const maxLines = 4 * maxEntries

// wholeLines yields the fields of every line that was written to its end.
func wholeLines(log []byte) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(string(log)) {
			fields := strings.Fields(line)
			if len(fields) < 3 || fields[len(fields)-1] != lineEnd || !strings.HasSuffix(line, "\n") {
				continue
			}
			if !yield(fields[:len(fields)-1]) {
				return
			}
		}
	}
}

func (l *logs) addJournal(fields []string) error {
	node, err := unfield(fields[1])
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	switch {
	case fields[0] == "~":
		delete(l.journal, node)
	case fields[0] == "*" && len(fields) == 5:
		run, err := unfield(fields[2])
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		digest, err := unfield(fields[3])
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		l.journal[node] = host.JournalEntry{Run: host.Word(run, maxName), Digest: host.Word(digest, maxName), Time: parseSeconds(fields[4])}
	}
	return nil
}

func journalLine(node string, e host.JournalEntry) string {
	return strings.Join([]string{"*", field(node), field(e.Run), field(e.Digest),
		fmt.Sprintf("%d.%09d", e.Time.Unix(), e.Time.Nanosecond()), lineEnd}, " ")
}

func (l *logs) addUndo(fields []string, dropped map[int]int) error {
	switch fields[0] {
	case "+":
		e, err := parseEntry(fields[1:])
		if err != nil {
			return err
		}
		l.entries = append(l.entries, e)
		l.lastSeq = max(l.lastSeq, e.seq)
	case "-":
		seq, err := strconv.Atoi(fields[1])
		if err != nil {
			return fmt.Errorf("undo log: %q is not a number", fields[1])
		}
		dropped[seq] = len(l.entries)
		l.lastSeq = max(l.lastSeq, seq)
	}
	return nil
}

func (l *logs) drop(seq int) {
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return e.seq == seq })
}

// journalLines and undoLines are the logs with nothing but what counts.
func (l *logs) journalLines() string {
	var b strings.Builder
	for node, e := range l.journal {
		b.WriteString(journalLine(node, e) + "\n")
	}
	return b.String()
}

func (l *logs) undoLines() string {
	var b strings.Builder
	for _, e := range l.entries {
		b.WriteString(e.line())
	}
	return b.String()
}

// recorded returns the number of the entry that the node recorded in this run for the key, or 0.
func (l *logs) recorded(run, node, kindWord, target string) int {
	for _, e := range l.entries {
		if e.run == run && e.node == node && e.word == kindWord && e.target == target {
			return e.seq
		}
	}
	return 0
}

// claimed lists the entries by which the path is claimed already, whoever has recorded them: the numbers of those that count for as long
// as what they keep is kept, and "-" if one keeps nothing.
func (l *logs) claimed(target string) []string {
	var numbers []string
	for _, e := range l.entries {
		switch {
		case e.word != "claim" || e.target != target:
		case e.takesBack():
			numbers = append(numbers, strconv.Itoa(e.seq))
		default:
			return []string{"-"}
		}
	}
	return numbers
}

// superseded lists the entries of a run that only an undo of that run would need, because an earlier run has recorded the
// same key in the same way already: pairs of the entry's number and that of the earlier one if something must be kept
// for it, else "-". (A removal that was cut is in the log before anything is kept, and an undo that was cut has taken back what was.)
func (l *logs) superseded(run string) []string {
	var pairs []string
	earlier := map[string]string{}
	for _, e := range l.entries {
		identity := e.key()
		if e.kind == kindCommand {
			identity += "\x00" + strings.Join(e.data, "\x00")
		}
		needs, recorded := earlier[identity]
		if e.saysLess() {
			identity += "\x00" + e.kind
			if !recorded {
				needs, recorded = earlier[identity]
			}
		}
		switch {
		case e.kind == kindPackage:
		case e.run == run && recorded:
			pairs = append(pairs, strconv.Itoa(e.seq), needs)
		case e.run == run, recorded:
		case e.takesBack():
			earlier[identity] = strconv.Itoa(e.seq)
		default:
			earlier[identity] = "-"
		}
	}
	return pairs
}

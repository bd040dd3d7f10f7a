// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"slices"
	"time"
)

// Query is everything that must be known of a host to decide. Queries of many steps are merged (Merge) and answered
// together. The zero Query asks for nothing but the System facts and the journal, which always come.
type Query struct {
	Paths    []PathQuery    `json:"paths,omitempty"`
	Units    []string       `json:"units,omitempty"`
	Sysctls  []string       `json:"sysctls,omitempty"`
	Modules  []string       `json:"modules,omitempty"`
	Packages []string       `json:"packages,omitempty"`
	Ports    []int32        `json:"ports,omitempty"`
	Commands []CommandQuery `json:"commands,omitempty"`
}

// PathQuery asks for one path: its kind, mode, owner, size and modification time, and on request more.
type PathQuery struct {
	// Path is absolute.
	Path string `json:"path"`
	// Digest asks for the sha256 of a regular file.
	Digest bool `json:"digest,omitempty"`
	// Content asks for the content itself, up to MaxContent bytes. Never ask it of a file that holds secrets.
	Content bool `json:"content,omitempty"`
	// Block asks for the content of the managed block of this name (see Block) rather than of the whole file. Where Path is a link, the
	// block is in the file that it leads to, be it observed, made or undone.
	Block string `json:"block,omitempty"`
}

// MaxContent is the most that a PathQuery with Content, or a CommandQuery, answers, in bytes; the rest is cut off.
const MaxContent = 256 << 10

// CommandQuery is a command that only looks. It runs as root without a terminal.
type CommandQuery struct {
	// ID names the answer in Facts.Commands. Two queries with one ID must be the same command.
	ID   string   `json:"id"`
	Argv []string `json:"argv"`
	// Timeout is its deadline, rounded up to tenths of a second; 0 means QueryTimeout. One that has not ended by then is stopped,
	// and its answer says so (Result.Stopped).
	Timeout time.Duration `json:"timeout,omitempty"`
}

// QueryTimeout is the deadline of a CommandQuery that names none.
const QueryTimeout = 10 * time.Second

// Limit is the deadline that the command has.
func (c CommandQuery) Limit() time.Duration {
	const unit = 100 * time.Millisecond
	limit := cmp.Or(c.Timeout, QueryTimeout)
	if rest := limit % unit; rest > 0 {
		limit += unit - rest
	}
	return limit
}

// Merge adds what q2 asks to q, each thing once; what either asks of a path is asked. It writes to no slice that q shares
// with others: many hosts ask what one step value says.
func (q *Query) Merge(q2 Query) {
	q.Paths = mergePaths(q.Paths, q2.Paths)
	q.Units = mergeSet(q.Units, q2.Units)
	q.Sysctls = mergeSet(q.Sysctls, q2.Sysctls)
	q.Modules = mergeSet(q.Modules, q2.Modules)
	q.Packages = mergeSet(q.Packages, q2.Packages)
	q.Ports = mergeSet(q.Ports, q2.Ports)
	have := make(map[string]bool, len(q.Commands))
	for _, c := range q.Commands {
		have[c.ID] = true
	}
	q.Commands = slices.Clip(q.Commands)
	for _, c := range q2.Commands {
		if !have[c.ID] {
			have[c.ID] = true
			q.Commands = append(q.Commands, c)
		}
	}
}

// Empty reports whether q asks for nothing of its own.
func (q Query) Empty() bool {
	return len(q.Paths)+len(q.Units)+len(q.Sysctls)+len(q.Modules)+len(q.Packages)+len(q.Ports)+len(q.Commands) == 0
}

func mergeSet[T comparable](a, b []T) []T {
	a = slices.Clip(a)
	have := make(map[T]bool, len(a)+len(b))
	for _, x := range a {
		have[x] = true
	}
	for _, x := range b {
		if !have[x] {
			have[x] = true
			a = append(a, x)
		}
	}
	return a
}

// mergePaths keeps one entry per (path, block).
func mergePaths(a, b []PathQuery) []PathQuery {
	type key struct{ path, block string }
	a = slices.Clone(a)
	at := make(map[key]int, len(a)+len(b))
	for i, p := range a {
		at[key{p.Path, p.Block}] = i
	}
	for _, p := range b {
		k := key{p.Path, p.Block}
		if i, ok := at[k]; ok {
			a[i].Digest = a[i].Digest || p.Digest
			a[i].Content = a[i].Content || p.Content
			continue
		}
		at[k] = len(a)
		a = append(a, p)
	}
	return a
}

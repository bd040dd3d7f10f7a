// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a config file, or worth a warning.
type Problem struct {
	// File is the file's name, empty for Parse.
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Path is the field as the file spells it, such as spec.hosts[2].address; empty means the file as a whole.
	Path string
	// Text says what is wrong and what to do. It never holds a secret.
	Text string
}

// String is "file:line: path: text", without what is not known.
func (p Problem) String() string {
	var where strings.Builder
	if p.File != "" {
		where.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		if p.File == "" {
			where.WriteString("line ")
		}
		fmt.Fprintf(&where, "%d:", p.Line)
	}
	if where.Len() > 0 {
		where.WriteByte(' ')
	}
	if p.Path != "" {
		where.WriteString(p.Path + ": ")
	}
	return where.String() + p.Text
}

// Error is all that is wrong with a config file, in the order of its lines.
type Error struct {
	Problems []Problem
}

// Error is one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// inOrder sorts problems by line and path, and drops those that say the same of the same field.
func inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path)) })
	return slices.Compact(problems)
}

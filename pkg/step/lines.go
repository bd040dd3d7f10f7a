// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

const (
	// mostContent is how large content may be that is compared line by line, in bytes.
	mostContent = 64 << 10
	// mostLines and longestLine bound what is shown of it.
	mostLines, longestLine = 20, 160
)

// Closer is what must be known beside what Observe asks, to say in which lines content differs that Precheck found to differ. It is
// asked only for content that holds no secret of ours, of files that everybody on the host may read.
func Closer(s Step, v View) host.Query {
	var q host.Query
	for _, f := range shown(s, v) {
		q.Paths = append(q.Paths, host.PathQuery{Path: f.Path, Content: true})
	}
	return q
}

// Lines are those in which content differs that Precheck found to differ, by the subjects of its differences, as far as they may be
// shown: a unified diff of few lines. closer are the answers to Closer.
func Lines(s Step, v View, closer *host.Facts) map[string]string {
	lines := map[string]string{}
	for _, f := range shown(s, v) {
		if seen, asked := closer.Paths[f.Path]; asked && seen.Exists {
			lines[host.File{Path: f.Path}.Key()] = unified(string(seen.Content), f.Content.String())
		}
	}
	for _, b := range partsOf[Block](s) {
		if have, there := v.Facts.Blocks[b.Path+"#"+b.Name]; there && have != b.Content {
			lines[host.Block{Path: b.Path, Name: b.Name}.Key()] = unified(have, b.Content)
		}
	}
	maps.DeleteFunc(lines, func(_, text string) bool { return text == "" })
	return lines
}

// readable is the permission of everybody to read.
const readable = 0o004

// shown are the files that a step writes and that are there with other content, where both are for all to see.
func shown(s Step, v View) []File {
	var all []File
	for _, f := range partsOf[File](s) {
		have := v.Facts.Paths[f.Path]
		if !f.Due(v.Facts) || f.From != nil || f.Authority != "" || !f.Content.Known() || f.Mode&readable == 0 ||
			!have.Exists || !have.Mode.IsRegular() || have.Mode&readable == 0 || have.Size > mostContent {
			continue
		}
		if want, err := f.digest(v.Values); err == nil && have.Digest != want {
			all = append(all, f)
		}
	}
	return all
}

// partsOf are the parts of a kind that Precheck compares.
func partsOf[T Step](s Step) []T {
	if one, is := s.(T); is {
		return []T{one}
	}
	sequence, is := s.(Sequence)
	if !is || sequence.Done != nil {
		return nil
	}
	var all []T
	for _, p := range sequence.Parts {
		all = append(all, partsOf[T](p)...)
	}
	return all
}

// unified are the first lines in which texts differ, "" where that is not to be shown: what is there may be anybody's.
func unified(have, want string) string {
	if !utf8.ValidString(have) || strings.Contains(have, "PRIVATE KEY") {
		return ""
	}
	var text bytes.Buffer
	if err := difflib.WriteUnifiedDiff(&text, difflib.UnifiedDiff{A: ended(have), B: ended(want), Context: 1}); err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	rest := len(lines) - mostLines
	if rest > 0 {
		lines = lines[:mostLines]
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(host.Text(line, longestLine), " \t")
	}
	if rest > 0 {
		lines = append(lines, fmt.Sprintf("and %d lines more", rest))
	}
	return strings.Join(lines, "\n")
}

// ended are a text's lines, each with its end.
func ended(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	last := len(lines) - 1
	if lines[last] == "" {
		return lines[:last]
	}
	lines[last] += "\n\\ No newline at the end\n"
	return lines
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadersFindTheirWay: each stop of docs/contributing/reading.md is a file that there is, with what the reader is to look for.
func TestReadersFindTheirWay(t *testing.T) {
	const page = "docs/contributing/reading.md"
	kept(t, stops,
		plant{"../planted.md: there is no such file", page, "[stop](../planted.md)\n"},
		plant{"0 stops name a file", page, "None.\n"},
		plant{"../../pkg/kube/doc.go does not declare Planted", page, "\n## 1. A [stop](../../pkg/kube/doc.go), `Planted`\n"},
	)
}

func stops(in *tree, report func(string, ...any)) {
	const dir = "docs/contributing"
	text := in.text(dir + "/reading.md")
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("..", "..", dir, link[1])); err != nil {
			report("%s: there is no such file", link[1])
		}
	}
	stops := regexp.MustCompile("(?m)^## \\d+\\. .*\\]\\(([^)]+)\\), `(\\w+)`$").FindAllStringSubmatch(text, -1)
	if len(stops) != 10 || strings.Count(text, "\n## ") != 10 {
		report("%d stops name a file and what to look for in it, of %d", len(stops), strings.Count(text, "\n## "))
	}
	for _, stop := range stops {
		content, err := os.ReadFile(filepath.Join("..", "..", dir, stop[1]))
		declared := `(?m)^(func (\([^)]*\) )?` + stop[2] + `\(|type ` + stop[2] + ` |` + stop[2] + `\(\) \{)`
		if err == nil && !regexp.MustCompile(declared).Match(content) {
			report("%s does not declare %s", stop[1], stop[2])
		}
	}
}

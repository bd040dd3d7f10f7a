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
	dir := filepath.Join("..", "..", "docs", "contributing")
	text, err := os.ReadFile(filepath.Join(dir, "reading.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(dir, link[1])); err != nil {
			t.Error(err)
		}
	}
	stops := regexp.MustCompile("(?m)^## \\d+\\. .*\\]\\(([^)]+)\\), `(\\w+)`$").FindAllStringSubmatch(string(text), -1)
	if len(stops) != 10 || strings.Count(string(text), "\n## ") != 10 {
		t.Errorf("%d stops name a file and what to look for in it, of %d", len(stops), strings.Count(string(text), "\n## "))
	}
	for _, stop := range stops {
		content, err := os.ReadFile(filepath.Join(dir, stop[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		declared := `(?m)^(func (\([^)]*\) )?` + stop[2] + `\(|type ` + stop[2] + ` |` + stop[2] + `\(\) \{)`
		if !regexp.MustCompile(declared).Match(content) {
			t.Errorf("%s does not declare %s", stop[1], stop[2])
		}
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"strings"
	"testing"
)

func TestUnified(t *testing.T) {
	many, others := strings.Repeat("a\n", 100), strings.Repeat("b\n", 100)
	for name, tt := range map[string]struct{ have, want, shown string }{
		"a line":       {"a\nb\nc\nd\n", "a\nb\nx\nd\n", "@@ -2,3 +2,3 @@\n b\n-c\n+x\n d"},
		"its end":      {"a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at the end\n+b"},
		"nothing":      {"", "a\n", "@@ -0,0 +1 @@\n+a"},
		"not text":     {"\xff\xfe", "a\n", ""},
		"a key":        {"-----BEGIN EC PRIVATE KEY-----\n", "a\n", ""},
		"a long line":  {strings.Repeat("x", 1000) + "\n", "a\n", "@@ -1 +1 @@\n-" + strings.Repeat("x", 156) + "…\n+a"},
		"escapes":      {"\x1b]0;title\a\n", "a\n", "@@ -1 +1 @@\n-]0;title\n+a"},
		"more than 20": {many, others, "@@ -1,100 +1,100 @@\n" + strings.TrimSuffix(strings.Repeat("-a\n", 19), "\n") + "\nand 181 lines more"},
	} {
		if got := unified(tt.have, tt.want); got != tt.shown {
			t.Errorf("%s: shown as\n%s\nnot\n%s", name, got, tt.shown)
		}
	}
}

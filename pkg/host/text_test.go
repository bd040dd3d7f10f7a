// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

func TestText(t *testing.T) {
	for name, test := range map[string]struct {
		in, text, word string
		limit          int
	}{
		"plain":           {"as it is\n\tdone", "as it is\n\tdone", "as it is  done", 100},
		"escape sequence": {"\x1b]52;c;ZXZpbA==\x07title\x1b[31m", "]52;c;ZXZpbA==title[31m", "]52;c;ZXZpbA==title[31m", 100},
		"C1":              {"a\u009b31mb\r\nc", "a31mb\nc", "a31mb c", 100},
		"NUL":             {"a\x00b", "ab", "ab", 100},
		"not UTF-8":       {"a\xff\xfeb", "a\ufffd\ufffdb", "a\ufffd\ufffdb", 100},
		"direction":       {"a\u202egnp.exe", "agnp.exe", "agnp.exe", 100},
		"cut":             {strings.Repeat("x", 20), "xxxxxxx…", "xxxxxxx…", 10},
		"cut in a letter": {strings.Repeat("é", 20), "ééé…", "ééé…", 10},
		"no room":         {"xyz", "xy", "xy", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := host.Text(test.in, test.limit); got != test.text {
				t.Errorf("text %q, want %q", got, test.text)
			}
			if got := host.Word(test.in, test.limit); got != test.word {
				t.Errorf("word %q, want %q", got, test.word)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b[31m\xff\u202e\u2028é", 8)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(0, limit%4096)
		for _, got := range []string{host.Text(s, limit), host.Word(s, limit)} {
			if len(got) > limit || !utf8.ValidString(got) {
				t.Errorf("%q of %q by %d", got, s, limit)
			}
			if strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
				t.Errorf("%q has control characters", got)
			}
		}
	})
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
)

// quote makes s one word of sh. s must not hold NUL, which no shell can carry; see printf for what may.
func quote(s string) string {
	if s == "" {
		return "''"
	}
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '/' || r == '.' || r == '-' || r == '_' || r == ':'
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

// printf is the command that prints content, whatever bytes it holds, by the shell's builtin.
func printf(content []byte) string {
	if bytes.IndexByte(content, 0) < 0 {
		return "printf %s " + quote(string(content))
	}
	// With NUL in it the content must be the format. Every byte that means something in a format is written in octal.
	var b strings.Builder
	b.WriteString("printf '")
	for i, c := range content {
		if c == 0 || c == '\\' || c == '%' || c == '\'' || i == 0 && c == '-' {
			fmt.Fprintf(&b, `\%03o`, c)
			continue
		}
		b.WriteByte(c)
	}
	b.WriteString("'")
	return b.String()
}

// field makes s one field of a log line: no blanks, no end mark, and "/" as it is, so that the parent of an encoded path
// is the encoded parent.
func field(s string) string {
	if s == "" {
		return "-"
	}
	if s == "-" {
		return "%2D"
	}
	return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/")
}

// unfield is the inverse of field.
func unfield(s string) (string, error) {
	if s == "-" {
		return "", nil
	}
	return url.QueryUnescape(s)
}

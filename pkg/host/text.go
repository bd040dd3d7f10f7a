// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text makes text that a host has sent fit to be shown and stored: valid UTF-8 without control characters but newline and
// tab, without characters that change the direction of what follows, and of at most limit bytes, cut at the end. A terminal
// does nothing but print it, and an API server that counts characters or bytes up to limit accepts it.
func Text(s string, limit int) string { return clean(s, limit, "\n\t") }

// Word is Text on one line: newlines and tabs become blanks, and there are none at the ends.
func Word(s string, limit int) string {
	return strings.TrimSpace(clean(strings.NewReplacer("\n", " ", "\t", " ").Replace(s), limit, ""))
}

// ellipsis ends what was cut.
const ellipsis = "…"

func clean(s string, limit int, keep string) string {
	if plain(s, keep) && len(s) <= limit {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !shown(r, keep) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			return shorten(b.String(), limit)
		}
		b.WriteRune(r) // an invalid byte comes as U+FFFD
	}
	return b.String()
}

// shorten makes room for the ellipsis at the end of s, which was cut at limit.
func shorten(s string, limit int) string {
	if limit < len(ellipsis) {
		return s
	}
	end := min(len(s), limit-len(ellipsis))
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}

// plain reports whether s can stay as it is.
func plain(s, keep string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !shown(r, keep) })
}

// shown reports whether a character is for people and not for their terminal.
func shown(r rune, keep string) bool {
	if unicode.IsControl(r) {
		return strings.ContainsRune(keep, r)
	}
	return !unicode.Is(unicode.Bidi_Control, r) && r != '\u2028' && r != '\u2029'
}

// InURL is an address as it stands in a URL: one of IPv6 in brackets.
func InURL(address string) string {
	if a, err := netip.ParseAddr(address); err == nil && a.Is6() {
		return "[" + address + "]"
	}
	return address
}

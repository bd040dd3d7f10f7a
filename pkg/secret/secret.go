// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package secret holds values that must not be seen: passwords, tokens, private keys.
//
// A Value prints, formats, logs and marshals as Redacted. What it holds leaves it by Reveal alone, so a search for
// that word finds every place where a secret is used.
package secret

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what a reader sees in the place of a secret.
const Redacted = "(redacted)"

// errUnmarshal is returned for every attempt to read a secret back from text: what was written there was Redacted.
var errUnmarshal = errors.New("a secret cannot be read from text, because it is never written to it; use secret.New")

// Value is one secret. The zero Value holds none. Values are immutable; compare them with Equal.
type Value struct {
	// A pointer, because fmt cannot call methods on the unexported fields of a caller's struct: it prints the address.
	content *string
}

// New makes a Value of its own copy of content.
func New[T ~string | ~[]byte](content T) Value {
	if len(content) == 0 {
		return Value{}
	}
	own := string(content)
	return Value{content: &own}
}

// Reveal returns a fresh copy of what the Value holds, nil for the zero Value.
func (v Value) Reveal() []byte {
	if v.content == nil {
		return nil
	}
	return []byte(*v.content)
}

// IsZero reports whether the Value holds nothing.
func (v Value) IsZero() bool { return v.content == nil }

// Equal reports in constant time (for values of one length) whether both hold the same.
func (v Value) Equal(other Value) bool {
	return subtle.ConstantTimeCompare(v.Reveal(), other.Reveal()) == 1
}

// String returns Redacted, or "" for the zero Value.
func (v Value) String() string {
	if v.IsZero() {
		return ""
	}
	return Redacted
}

// GoString is String, for %#v.
func (v Value) GoString() string { return v.String() }

// Format writes String whatever the verb and flags: %x and %d would otherwise see the content.
func (v Value) Format(state fmt.State, _ rune) {
	// fmt.State's Write cannot fail in a way that a Formatter could report.
	_, _ = io.WriteString(state, v.String())
}

// MarshalText returns String.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalJSON returns String as a JSON string.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

// UnmarshalText accepts the empty text, for the zero Value, and refuses everything else.
func (v *Value) UnmarshalText(text []byte) error {
	if len(text) != 0 {
		return errUnmarshal
	}
	*v = Value{}
	return nil
}

// LogValue is String, for log/slog.
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalLog is String, for logr.
func (v Value) MarshalLog() any { return v.String() }

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision has what pure decisions of reconcilers answer with.
package decision

import "fmt"

// Blocker is why something is not done now. Nil means that nothing is in the way.
//
// Decisions are made from the reason, or from whether there is a Blocker; the message is for people and is never parsed.
type Blocker struct {
	// Reason is a stable word in CamelCase, as conditions have.
	Reason string
	// Message is one or more sentences without a first capital.
	Message string
}

// Block is a Blocker with a formatted message.
func Block(reason, format string, args ...any) *Blocker {
	return &Blocker{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Prefixed is the same Blocker with words before its message. It is nil if the Blocker is.
func (b *Blocker) Prefixed(format string, args ...any) *Blocker {
	if b == nil {
		return nil
	}
	return &Blocker{Reason: b.Reason, Message: fmt.Sprintf(format, args...) + b.Message}
}

// String is the message, "" if nothing is in the way.
func (b *Blocker) String() string {
	if b == nil {
		return ""
	}
	return b.Message
}

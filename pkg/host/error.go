// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is what sort of thing went wrong; it says whether trying again can help (Retryable).
type Kind string

// The kinds.
const (
	// KindUnreachable: no TCP connection, or it was lost. Trying again may help.
	KindUnreachable Kind = "Unreachable"
	// KindHostKey: the host showed another key than the pinned one; nothing was sent to it.
	KindHostKey Kind = "HostKeyMismatch"
	// KindAuth: the host refused the credentials.
	KindAuth Kind = "AuthenticationFailed"
	// KindPrivilege: logged in, but may not become root.
	KindPrivilege Kind = "PrivilegeRefused"
	// KindLocked: another writer holds the host.
	KindLocked Kind = "Locked"
	// KindForeign: the host belongs to somebody else, or does not say to whom; nothing was changed.
	KindForeign Kind = "OwnedByOther"
	// KindSuperseded: the host was changed with another copy of the cluster's state; see Serial. Nothing was changed.
	KindSuperseded Kind = "StateSuperseded"
	// KindDiskFull: the host has no space left.
	KindDiskFull Kind = "DiskFull"
	// KindCorrupt: content arrived, or lay at the source, with another digest than declared.
	KindCorrupt Kind = "Corrupt"
	// KindCommand: a command or change failed on the host.
	KindCommand Kind = "Failed"
	// KindTimeout: an act or command took longer than its timeout and was stopped.
	KindTimeout Kind = "Timeout"
	// KindNoAnswer: the host was reached, and did not answer an exchange in the time that it had. Trying again may help.
	KindNoAnswer Kind = "NoAnswer"
	// KindUndecided: the host answered, and yet it cannot be told how it is: a check was stopped at its deadline, or says that it
	// cannot tell. Nothing was changed for it. Trying again may help.
	KindUndecided Kind = "Undecided"
	// KindInvalid: what was asked makes no sense (a relative path, an unknown state); nothing was sent.
	KindInvalid Kind = "Invalid"
	// KindOtherAuthority: the host has another certificate authority than the one that it is to be given; nothing was changed.
	KindOtherAuthority Kind = "OtherAuthority"
	// KindProtocol: the host's answer was not understood, or larger than what was asked for; a defect of ours, or a host that is
	// broken or hostile.
	KindProtocol Kind = "Protocol"
)

// Retryable reports whether the same act may succeed later without anybody's doing.
func (k Kind) Retryable() bool {
	switch k {
	case KindUnreachable, KindTimeout, KindNoAnswer, KindUndecided, KindCommand, KindLocked:
		return true
	}
	return false
}

// Error is a failure on or on the way to a host, in words for a person. It never holds a secret.
type Error struct {
	Kind Kind
	// Host is the name of the host.
	Host string
	// Change is the Key of the change that failed, if one did.
	Change string
	// Message says what failed, in one line.
	Message string
	// Output is the redacted tail of what the failing command printed.
	Output string
	// Remedy says what to do; may be empty.
	Remedy string
	// ExitCode of the failing command, 0 if none did.
	ExitCode int
	// Err is the cause, if another error is.
	Err error
}

// Error prints one line: host, change, message and cause.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "host %s: ", e.Host)
	if e.Change != "" {
		b.WriteString(e.Change + ": ")
	}
	b.WriteString(e.Message)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's tree, or "".
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

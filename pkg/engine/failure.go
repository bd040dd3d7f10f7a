// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Error is why a run did not come to its end: the root causes, not what they held back.
type Error struct {
	Intent, Cluster string
	Failures        []Failure
	// Interrupted are the nodes that were under way when the run's context was cancelled; Cause is why it was.
	Interrupted []string
	Cause       error
}

// Error lists the failures, each with its remedy, over several lines.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Intent)
	if e.Cluster != "" {
		b.WriteString(" of " + e.Cluster)
	}
	switch {
	case e.Cause != nil && len(e.Interrupted) > 0:
		fmt.Fprintf(&b, " was interrupted (%v) while running %s", e.Cause, strings.Join(e.Interrupted, ", "))
	case e.Cause != nil:
		fmt.Fprintf(&b, " was interrupted (%v)", e.Cause)
	default:
		b.WriteString(" failed")
	}
	for _, f := range e.Failures {
		b.WriteString("\n" + f.Error())
	}
	return b.String()
}

// Unwrap returns the causes.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	for _, f := range e.Failures {
		errs = append(errs, f)
	}
	return errs
}

// Failure is one root cause.
type Failure struct {
	// Host is "" on the controller. Address may be "".
	Host, Address string
	// Module, Task and Step are empty when the host could not be reached or observed.
	Module, Task, Step string
	// Node is the plan's ID of the node.
	Node string
	// Position of the node among the Total nodes of its host, counted from 1.
	Position, Total int
	// Attempt is the last one; Attempts is the limit.
	Attempt, Attempts int
	// Err is the cause, without secrets; Output the tail of what the failing command printed.
	Err    error
	Output string
	// Remedy says what to do; may be empty.
	Remedy string
	// Left says in what state the host was left: what was kept or rolled back.
	Left string
}

// Unwrap returns the cause.
func (f Failure) Unwrap() error { return f.Err }

// root names the failure to what it holds back.
func (f Failure) root() string {
	if f.Node == "" {
		return "host " + f.Host
	}
	return f.Node
}

// Where says on which host, in which task and step, and at which attempt.
func (f Failure) Where() string {
	var b strings.Builder
	switch {
	case f.Host == "":
		b.WriteString("controller")
	case f.Address == "" || f.Address == f.Host:
		b.WriteString("host " + f.Host)
	default:
		fmt.Fprintf(&b, "host %s (%s)", f.Host, f.Address)
	}
	if f.Step != "" {
		fmt.Fprintf(&b, ", task %s, step %s (%d of %d)", f.Task, f.Step, f.Position, f.Total)
	}
	if f.Attempts > 1 {
		fmt.Fprintf(&b, ", attempt %d of %d", f.Attempt, f.Attempts)
	}
	return b.String()
}

// Message is the cause in words, without the host's name, which Where tells.
func (f Failure) Message() string { return message(f.Err) }

// Error is Where and Message, and below them the output, the remedy and what is left.
func (f Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Where() + ":\n  " + indent(f.Message(), "  "))
	if f.Output != "" {
		b.WriteString("\n  | " + indent(strings.TrimRight(f.Output, "\n"), "  | "))
	}
	if f.Remedy != "" {
		b.WriteString("\n  Remedy: " + indent(f.Remedy, "  "))
	}
	if f.Left != "" {
		b.WriteString("\n  " + f.Left)
	}
	return b.String()
}

func indent(s, with string) string { return strings.ReplaceAll(s, "\n", "\n"+with) }

// message is err in words. Of a host's error only what it adds to the host's name.
func message(err error) string {
	var he *host.Error
	if direct, ok := err.(*host.Error); ok { //nolint:errorlint // only when nothing was said around it
		he = direct
	}
	if he == nil {
		return err.Error()
	}
	text := he.Message
	if he.Change != "" {
		text = he.Change + ": " + text
	}
	if he.Err != nil {
		text += ": " + he.Err.Error()
	}
	return text
}

// Unmet is the failure of a step that ran without an error and yet did not bring about what it should.
type Unmet struct{ Diff step.Diff }

// Error names what still differs.
func (u *Unmet) Error() string { return "ran, but still differs: " + summary(u.Diff) }

// TimedOut is the failure of an attempt that took too long.
type TimedOut struct {
	After time.Duration
	// Missing is what a gate last waited for; "" for other steps.
	Missing string
	Err     error
}

// Error says how long and, of a gate, what was last missing.
func (t *TimedOut) Error() string {
	if t.Missing != "" {
		return fmt.Sprintf("timed out after %s; last observed: %s", t.After, t.Missing)
	}
	return fmt.Sprintf("took longer than %s and was stopped", t.After)
}

// Unwrap returns the cause.
func (t *TimedOut) Unwrap() error { return t.Err }

// Panic is the failure of a step that panicked: a defect of ours. Stack is for those who fix it and is in no message.
type Panic struct {
	Value any
	Stack []byte
}

// Error names the value that it panicked with.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// summary shows the first differences.
func summary(d step.Diff) string {
	const most = 3
	var parts []string
	for i, x := range d {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(d)-most))
			break
		}
		switch {
		case x.From == "" && x.To == "":
			parts = append(parts, x.Subject)
		case x.From == "":
			parts = append(parts, fmt.Sprintf("%s → %s", x.Subject, x.To))
		default:
			parts = append(parts, fmt.Sprintf("%s: %s → %s", x.Subject, x.From, x.To))
		}
	}
	return strings.Join(parts, "; ")
}

// interrupted reports whether err is only what the end of ctx brought about.
func interrupted(ctx context.Context, err error) bool {
	var p *Panic
	return ctx.Err() != nil && !errors.As(err, &p)
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remediation decides what is tried with the host of an unhealthy Machine before the Machine is replaced, and in which order. It is
// pure, and the same for workers and control planes; what replaces a Machine differs.
package remediation

import (
	"fmt"
	"strings"
	"time"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// Stage is one thing that is tried with a host.
type Stage struct {
	// Annotation of the KubexmConfig asks for it, and Reason is that of the condition meanwhile.
	Annotation, Reason string
	// Operation is what the host has done then.
	Operation bootstrapv1.OperationType
	// doing is what the host does, and done what it has done then.
	doing, done string
}

// The stages, in the order in which they are tried.
var (
	Converge = &Stage{
		Annotation: bootstrapv1.ConvergeAnnotation, Reason: bootstrapv1.ReconvergingHostReason, Operation: bootstrapv1.ConvergeOperation,
		doing: "its host is converged again", done: "converging its host again",
	}
	Reboot = &Stage{
		Annotation: bootstrapv1.RebootAnnotation, Reason: bootstrapv1.RebootingHostReason, Operation: bootstrapv1.RebootOperation,
		doing: "its host reboots", done: "rebooting its host",
	}
)

// Doing says what the host does.
func (s *Stage) Doing() string { return s.doing }

// Attempt is a stage as it is for one Machine.
type Attempt struct {
	Stage *Stage
	// Timeout is how long it may take to help; with 0 it is not tried. Field says where that is declared.
	Timeout time.Duration
	Field   string
	// Asked is when the host was asked for it because of what is wrong with the Machine now; the zero time if it was not.
	Asked time.Time
	// Config is the host's: it says what the host has done, and until when nobody was to touch it.
	Config *bootstrapv1.KubexmConfig
	// Blocker is why it is not begun; nil if it can be.
	Blocker *decision.Blocker
}

// Action is what is done next.
type Action struct {
	// Attempt is the stage that may help still; nil if the Machine is to be replaced.
	Attempt *Attempt
	// Ask is whether the host is asked for it now. Asked of the attempt is now, then.
	Ask bool
	// After is how long it may still take.
	After time.Duration
	// Message says what is done, or why nothing is tried any more.
	Message string
}

// from is since when the host has its time: nobody could help it while it was left alone.
func (a *Attempt) from() time.Time {
	if until := hosthealth.LeftAloneUntil(a.Config); until.After(a.Asked) {
		return until
	}
	return a.Asked
}

// wasCut reports whether the host was left alone for so long that it does not do any more what it was asked for.
func (a *Attempt) wasCut() bool {
	return !a.Asked.IsZero() && hosthealth.Answer(a.Config, a.Stage.Operation, a.Asked) == nil && !a.from().Before(a.Asked.Add(a.Timeout))
}

// Next is the first of the attempts that may help still, or that none does.
func Next(now time.Time, attempts ...Attempt) Action {
	var tried []string
	for i := range attempts {
		a := &attempts[i]
		if a.Timeout == 0 {
			tried = append(tried, fmt.Sprintf("%s is off (%s)", a.Stage.done, a.Field))
			continue
		}
		if a.wasCut() {
			a.Asked = time.Time{} // whether it can be done is decided anew
		}
		ask := a.Asked.IsZero()
		switch {
		case ask && a.Blocker != nil:
			tried = append(tried, a.Blocker.Message)
			continue
		case ask:
			a.Asked = now.UTC().Truncate(time.Second) // as the annotation has it
		}
		after := a.from().Add(a.Timeout).Sub(now)
		if after <= 0 {
			tried = append(tried, a.Stage.done+" has not helped")
			continue
		}
		return Action{Attempt: a, Ask: ask, After: after, Message: fmt.Sprintf("%s, and has %s from %s for that to help (%s)",
			a.Stage.doing, a.Timeout, a.from().UTC().Format(time.RFC3339), a.Field)}
	}
	return Action{Message: strings.Join(tried, "; ")}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

const (
	firstBackoff = 5 * time.Second
	lastBackoff  = 5 * time.Minute
)

// memory is what the process remembers of a host between jobs. Losing it costs one look at the host.
type memory struct {
	// system is what was last seen of the host, nil if it was not seen yet.
	system *host.System
	// input is what the host was last brought to, or what that failed for; ended is when.
	input string
	ended time.Time
	// converged is whether that succeeded; drifted, whether the host was found changed since.
	converged, drifted bool
	// failures is how many runs in a row have failed for this input.
	failures int32
	// restored is how many of these runs have put the host back to what it was before its programs were replaced.
	restored int32
	// weight is what a run would disrupt, nil if it was not looked for; begun is the input of the last run that was let begin all the
	// same, until it has ended with the host as it should be or as it was.
	weight *weight
	begun  string
	// wants is the input of the run that was started last.
	wants string
	// resetFailures is how many resets have failed, and keptLogs whether the host's logs were kept before one.
	resetFailures int32
	keptLogs      bool
	// rebooted is when the reboot that ended last was asked for.
	rebooted time.Time
	// stopped is what was said of the end of the host's API server, the zero value while nothing was.
	stopped metav1.Condition
}

// learn takes in what a run or a look came to. A look that finds the host changed is for the caller to note.
func (m *memory) learn(out *outcome, ended time.Time) {
	if out.system != nil {
		m.system = out.system
	}
	if interrupted(out.err) {
		return
	}
	if m.input != out.input {
		m.failures, m.restored = 0, 0
	}
	m.input, m.ended, m.converged, m.drifted = out.input, ended, out.err == nil, false
	if m.converged {
		m.failures, m.restored = 0, 0
	} else {
		m.failures++
	}
	if out.restored() {
		m.restored++
	}
	if m.converged || out.restored() {
		m.begun = ""
	}
}

// mostRestored is how often a host in use is drained for a change that fails, and put back.
const mostRestored = 3

// exhausted reports whether nothing is tried any more until something else is asked for.
func (m *memory) exhausted() bool { return m.restored >= mostRestored }

// is reports whether the host was brought to this input, and not found changed since.
func (m memory) is(input string) bool { return m.converged && !m.drifted && m.input == input }

// action is what is done with a host.
type action string

const (
	// rest does nothing until after.
	rest action = "rest"
	// look compares the host with its plan and changes nothing.
	look action = "look"
	// weighs finds out what a run would disrupt, and changes nothing.
	weighs action = "weigh"
	// run makes the host so.
	run action = "run"
)

// decision is what to do now, or when to decide again.
type decision struct {
	act   action
	after time.Duration
}

// decide is pure. input is the digest of what the host must be; every is how often a converged host is looked at.
func (m memory) decide(input string, now time.Time, every time.Duration) decision {
	switch {
	case m.input != input, m.drifted:
		return decision{act: run}
	case m.exhausted():
		return decision{act: rest, after: lastBackoff}
	case m.failures > 0:
		if wait := backoff(m.failures) - now.Sub(m.ended); wait > 0 {
			return decision{act: rest, after: wait}
		}
		return decision{act: run}
	case !m.converged:
		return decision{act: run}
	}
	if wait := every - now.Sub(m.ended); wait > 0 {
		return decision{act: rest, after: wait}
	}
	return decision{act: look}
}

// backoff grows with failures in a row.
func backoff(failures int32) time.Duration {
	wait := firstBackoff
	for i := int32(1); i < failures && wait < lastBackoff; i++ {
		wait *= 2
	}
	return min(wait, lastBackoff)
}

// recall is what an earlier process has left in the status: that a run failed lately, for the present input.
func recall(status *bootstrapv1.KubexmConfigStatus, input string) memory {
	last := status.LastRun
	if last.Outcome != bootstrapv1.RunFailed || last.Failures == nil || last.EndTime.IsZero() {
		return memory{}
	}
	if last.InputDigest != "" && last.InputDigest != input {
		return memory{}
	}
	return memory{input: input, ended: last.EndTime.Time, failures: *last.Failures, restored: ptr.Deref(last.Restored, 0)}
}

// decideReset says whether a reset may be tried now.
func (m memory) decideReset(now time.Time) decision {
	if m.resetFailures > 0 {
		if wait := backoff(m.resetFailures) - now.Sub(m.ended); wait > 0 {
			return decision{act: rest, after: wait}
		}
	}
	return decision{act: run}
}

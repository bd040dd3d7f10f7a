// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	firstBackoff = 5 * time.Second
	lastBackoff  = 5 * time.Minute
)

// hostCache is what the process remembers of a host between jobs. Losing it costs one observation of the host.
type hostCache struct {
	// system is what was last seen of the host, nil if it was not seen yet.
	system *host.System
	// input is what the host was last brought to, or what that failed for; ended is when.
	input string
	ended time.Time
	// converged is whether that succeeded; drifted, whether the host was found changed since.
	converged, drifted bool
	// unsure is how many looks in a row could not tell whether the host is so, or what a run would disrupt.
	unsure int32
	// failures is how many runs in a row have failed for this input.
	failures int32
	// restored is how many of these runs have rolled the host back to a savepoint.
	restored int32
	// weight is what a run would disrupt, nil if it was not looked for; begun is the input of the last run that has changed something,
	// until one has ended with the host as it should be or as it was.
	weight *weight
	begun  string
	// turn is whether the host was let be disrupted, and has not given its turn back.
	turn bool
	// foreign is whether the last run, or reset, found the host to be somebody else's, and adopts from whom it was to be taken over.
	foreign bool
	adopts  string
	// follows is how many times in a row the host was brought to keep up with its cluster while the rest waits, and followed when it
	// was last.
	follows  int32
	followed time.Time
	// wants is the input of the run that was started last.
	wants string
	// tries are of a host that leaves, and keptLogs is whether its logs were kept before a reset.
	tries
	keptLogs bool
}

// recordOutcome takes in what a run or a look came to, once: it reports whether it has not yet, such as because the status could not be
// written then. A look that finds the host changed is for the caller to note.
func (m *hostCache) recordOutcome(out *outcome, ended time.Time) (isNew bool) {
	if out.system != nil {
		m.system = out.system
	}
	if !ended.IsZero() && m.ended.Equal(ended) {
		return false
	}
	if out.begun {
		m.begun = out.input
	}
	if interrupted(out.err) {
		return false
	}
	if m.input != out.input {
		m.failures, m.restored = 0, 0
	}
	m.input, m.ended, m.converged, m.drifted, m.unsure = out.input, ended, out.err == nil, false, 0
	m.foreign = foreign(out.err)
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
	return true
}

// mostRestored is how often a host in use is drained for a change that fails, and rolled back.
const mostRestored = 3

// exhausted reports whether nothing is tried any more until something else is asked for.
func (m *hostCache) exhausted() bool { return m.restored >= mostRestored }

// is reports whether the host was brought to this input, and not found changed since.
func (m hostCache) is(input string) bool { return m.converged && !m.drifted && m.input == input }

// action is what is done with a host.
type action string

const (
	// rest does nothing until after.
	rest action = "rest"
	// look compares the host with its plan and changes nothing.
	look action = "look"
	// weighs finds out what a run would disrupt, and changes nothing.
	weighs action = "weigh"
	// catchUp makes of a plan that waits what keeps the host up with the others of its cluster.
	catchUp action = "catch up"
	// converges makes the host so.
	converges action = "converge"
)

// need is what to do now, or when to decide again.
type need struct {
	act   action
	after time.Duration
	// turn is whether the host must have its turn for that.
	turn bool
}

// decide is pure. input is the digest of what the host must be, adopts from whom it is to be taken over; every is how often a
// converged host is observed; drift is what becomes of a difference that is found then.
func (m hostCache) decide(input, adopts string, now time.Time, every time.Duration, drift spec.DriftPolicy) need {
	switch {
	case m.input == input && m.drifted && drift == spec.DriftReport && !m.foreign:
		if wait := m.driftCheckAfter(every) - now.Sub(m.ended); wait > 0 {
			return need{act: rest, after: wait}
		}
		return need{act: look}
	case m.input != input, m.drifted, m.foreign && m.adopts != adopts:
		return need{act: converges}
	case m.foreign:
		if wait := lastBackoff - now.Sub(m.ended); wait > 0 {
			return need{act: rest, after: wait}
		}
		return need{act: converges}
	case m.exhausted():
		return need{act: rest, after: lastBackoff}
	case m.failures > 0:
		if wait := backoff(m.failures) - now.Sub(m.ended); wait > 0 {
			return need{act: rest, after: wait}
		}
		return need{act: converges}
	case !m.converged:
		return need{act: converges}
	}
	if wait := m.driftCheckAfter(every) - now.Sub(m.ended); wait > 0 {
		return need{act: rest, after: wait}
	}
	return need{act: look}
}

// backoff grows with failures in a row.
func backoff(failures int32) time.Duration {
	wait := firstBackoff
	for i := int32(1); i < failures && wait < lastBackoff; i++ {
		wait *= 2
	}
	return min(wait, lastBackoff)
}

// recall is what is known of a host of which this process remembers nothing: by its status, or by what is kept beside that, which a move or
// a backup takes along, of a host whose drift is only to be reported.
func recall(config *bootstrapv1.KubexmConfig, input, lasting string, drift spec.DriftPolicy) hostCache {
	last := config.Status.Operation(bootstrapv1.ConvergeOperation)
	lost := last.StartTime.IsZero() && last.EndTime.IsZero()
	if lost && drift == spec.DriftReport && config.Annotations[bootstrapv1.ConvergedToAnnotation] == lasting {
		return hostCache{input: input, converged: true} // to be observed now
	}
	return fromStatus(&config.Status, input, drift)
}

// recordConverged keeps beside the status what the host was brought to, for as long as its drift is only to be reported.
func (m *hostCache) recordConverged(config *bootstrapv1.KubexmConfig, input, lasting string, drift spec.DriftPolicy) {
	switch {
	case drift != spec.DriftReport:
		delete(config.Annotations, bootstrapv1.ConvergedToAnnotation)
	case m.converged && m.input == input:
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.ConvergedToAnnotation, lasting)
	}
}

// lastingOf is the digest of what a host must be, and of who has asked for that, without what is another after objects were moved: its
// addresses, and the versions of Secrets. Everybody may read it who may read the KubexmConfig, so that nothing of what Secrets have is part
// of it: the digest of a password tells whether a guess is right.
func lastingOf(t spec.Target, asked string) (string, error) {
	t.Host.Address, t.Host.InternalAddresses = "", nil
	raw, err := json.Marshal(struct {
		Target spec.Target
		Asked  string
	}{t, asked})
	if err != nil {
		return "", fmt.Errorf("digest of what the host must be: %w", err)
	}
	return digest(raw), nil
}

// fromStatus is what an earlier process has left in the status: that runs failed lately, for the present input, though another may have
// been cut since; or that one succeeded, where what has changed on the host since is only to be reported.
func fromStatus(status *bootstrapv1.KubexmConfigStatus, input string, drift spec.DriftPolicy) hostCache {
	last := status.Operation(bootstrapv1.ConvergeOperation)
	if drift == spec.DriftReport && last.Outcome == bootstrapv1.RunSucceeded && last.InputDigest == input {
		return hostCache{input: input, converged: true} // to be observed now
	}
	failures := ptr.Deref(last.Failures, 0)
	isFor := last.InputDigest == input
	switch last.Outcome {
	case bootstrapv1.RunFailed:
		isFor = (isFor || last.InputDigest == "") && !last.EndTime.IsZero()
	case "", bootstrapv1.RunInterrupted: // what it would have come to is not known, and what those before it came to is
	default:
		return hostCache{}
	}
	if failures == 0 || !isFor {
		return hostCache{}
	}
	return hostCache{input: input, ended: last.EndTime.Time, failures: failures, restored: ptr.Deref(last.Restored, 0)}
}

// pauseOfReset is how long after a reset that failed the next is tried. That a host is somebody else's takes a person to change.
func (m hostCache) pauseOfReset() time.Duration {
	if m.foreign {
		return lastBackoff
	}
	return backoff(m.resetFailures)
}

// decideReset says whether a reset may be tried now.
func (m hostCache) decideReset(adopts string, now time.Time) need {
	if m.resetFailures > 0 && (!m.foreign || m.adopts == adopts) {
		if wait := m.pauseOfReset() - now.Sub(m.ended); wait > 0 {
			return need{act: rest, after: wait}
		}
	}
	return need{act: converges}
}

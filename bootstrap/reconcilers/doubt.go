// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
)

// inDoubt reports whether the observation of a host has failed because it is not known of some steps whether they are so, such as on a host
// that is very slow. Nothing is run for that. A look that has found something changed all the same has found drift; what a run would
// disrupt, however, is known only when all is.
func inDoubt(job *hostrun.State[outcome]) bool {
	switch out := &job.Result; job.What {
	case looking:
		return engine.Undecided(out.err) && out.onHost().Changed == 0
	case weighing:
		return engine.Undecided(out.err)
	}
	return false
}

// settleDoubt says what is not known, and has the host observed again after a while that grows.
func (r *KubexmConfigReconciler) settleDoubt(ctx context.Context, s *scope) (ctrl.Result, error) {
	m, out := r.cached(s.config.UID), &s.job.Result
	isNew := m.doubt(s.job.What, out, s.job.Ended)
	r.store(s.config.UID, m)
	setReachability(s.config, out)
	again := m.driftCheckAfter(r.DriftCheckInterval)
	if s.job.What == weighing {
		again = backoff(m.failures)
	}
	message := fmt.Sprintf("%s\nNothing was changed for that. The host is observed again in %s.", textOf(out.err), again.Round(time.Second))
	if s.job.What == weighing {
		setFalse(s.config, bootstrapv1.DisruptionAllowedCondition, bootstrapv1.ObservationFailedReason,
			"it is not known what would be disrupted: "+message)
	} else {
		set(s.config, bootstrapv1.HostConvergedCondition, metav1.ConditionUnknown, bootstrapv1.ObservationFailedReason, message)
	}
	if isNew && m.unsure == 1 { // more of the same is in the condition
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, bootstrapv1.ObservationFailedReason, s.job.What, "%s", short(message))
	}
	return decideAnew(), r.reportContact(ctx, s)
}

// doubt notes, once, that a look could not tell whether the host is so, or what a run would disrupt. What was known of a host that is
// as planned stays known.
func (m *hostCache) doubt(what string, out *outcome, ended time.Time) (isNew bool) {
	if what == weighing {
		isNew = m.recordOutcome(out, ended) // it waits like one that has failed
		m.weight, m.unsure = nil, m.failures
		return isNew
	}
	if out.system != nil {
		m.system = out.system
	}
	if m.ended.Equal(ended) {
		return false
	}
	m.ended, m.unsure = ended, m.unsure+1
	return true
}

// unweighed reports whether a run waits because it is not known what it would disrupt.
func (m *hostCache) unweighed() bool { return m.unsure > 0 && !m.converged }

// driftCheckAfter is how long after a look, or a run, a host is observed.
func (m *hostCache) driftCheckAfter(every time.Duration) time.Duration {
	if m.unsure > 0 {
		return min(backoff(m.unsure), every)
	}
	return every
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// following is what the job is called.
const following = string(bootstrapv1.ConvergeNonDisruptiveOperation)

// keepUp has a host keep up with the others of its cluster while the rest of its plan waits.
func (r *KubexmConfigReconciler) keepUp() operation {
	return operation{name: bootstrapv1.ConvergeNonDisruptiveOperation, checks: r.planned(), due: r.keepUpIsDue, settle: r.settleKeepUp}
}

func (r *KubexmConfigReconciler) keepUpIsDue(_ context.Context, s *scope) (*run, error) {
	if s.needed.act != catchUp {
		return nil, nil
	}
	j, m := s.planned, r.cached(s.config.UID)
	m.wants = j.input
	r.store(s.config.UID, m)
	return &run{Urgent: s.role() != spec.RoleWorker, Do: j.follow, Lost: j.lost}, nil
}

func (r *KubexmConfigReconciler) settleKeepUp(ctx context.Context, s *scope) (ctrl.Result, error) {
	showFacts(ctx, s)
	m, out := r.cached(s.config.UID), &s.job.Result
	if out.system != nil {
		m.system = out.system
	}
	if interrupted(out.err) {
		r.store(s.config.UID, m)
		return decideAnew(), nil
	}
	if !m.followed.Equal(s.job.Ended) { // or it was counted, and the status could not be written
		m.follows, m.followed = m.follows+1, s.job.Ended
	}
	m.weight = nil // it is another now
	r.store(s.config.UID, m)
	setReachability(s.config, out)
	changed := out.report.Total().Changed
	record(s, "").Changed = ptr.To(int32(changed))
	if out.err == nil {
		s.config.Status.MembersDigest = out.members
	}
	switch {
	case out.err != nil:
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "PartialConvergeFailed", following, "%s", short(textOf(out.err)))
	case changed > 0:
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, "PartiallyConverged", following,
			"%d steps changed that are not disruptive; the rest waits", changed)
	}
	return decideAnew(), r.reportContact(ctx, s)
}

// followsAfter is how long it is until a host that waits keeps up with the others again: at once, unless it has just done so and
// differs still.
func (m hostCache) followsAfter(now time.Time) time.Duration {
	if m.follows == 0 {
		return 0
	}
	return backoff(m.follows) - now.Sub(m.followed)
}

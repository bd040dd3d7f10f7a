// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// weighing is what the job is called.
const weighing = string(bootstrapv1.AssessDisruptionOperation)

// assessDisruption finds out what converging would disrupt, where that needs somebody's consent or its turn.
func (r *KubexmConfigReconciler) assessDisruption() operation {
	return operation{
		name: bootstrapv1.AssessDisruptionOperation, checks: r.planned(), due: r.assessmentIsDue, settle: r.collectAssessment,
	}
}

func (r *KubexmConfigReconciler) assessmentIsDue(_ context.Context, s *scope) (*run, error) {
	if s.needed.act != weighs {
		return nil, nil
	}
	return &run{Do: s.planned.look, Lost: s.planned.lost}, nil
}

func (r *KubexmConfigReconciler) collectAssessment(ctx context.Context, s *scope) (ctrl.Result, error) {
	showFacts(ctx, s)
	m, out := r.cached(s.config.UID), &s.job.Result
	switch {
	case inDoubt(s.job):
		return r.settleDoubt(ctx, s)
	case out.err != nil: // a run would fail, too
		return r.settleRun(ctx, s)
	}
	if out.system != nil {
		m.system = out.system
	}
	m.weight, m.unsure = weigh(out, r.Clock.Now()), 0
	if !m.weight.follows {
		m.follows = 0
	}
	setReachability(s.config, out)
	r.store(s.config.UID, m)
	return decideAnew(), r.reportContact(ctx, s)
}

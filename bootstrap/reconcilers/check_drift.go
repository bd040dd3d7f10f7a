// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
)

// looking is what the job is called.
const looking = string(bootstrapv1.CheckDriftOperation)

// checkDrift compares the host with its plan: every so often, and when somebody asks for it.
func (r *KubexmConfigReconciler) checkDrift() operation {
	return operation{name: bootstrapv1.CheckDriftOperation, checks: r.planned(), due: r.driftCheckIsDue, settle: r.settleDriftCheck}
}

func (r *KubexmConfigReconciler) driftCheckIsDue(_ context.Context, s *scope) (*run, error) {
	if s.needed.act != look {
		return nil, nil
	}
	j := s.planned
	j.asked = s.asks(bootstrapv1.CheckDriftOperation)
	return &run{Do: j.look, Lost: j.lost}, nil
}

func (r *KubexmConfigReconciler) settleDriftCheck(ctx context.Context, s *scope) (ctrl.Result, error) {
	m, out := r.cached(s.config.UID), &s.job.Result
	showFacts(ctx, s)
	if !out.asked.IsZero() && !interrupted(out.err) { // a status that each check writes to would be one that all who watch it read
		recordDriftCheck(s)
	}
	if out.reportOnly {
		setReachability(s.config, out)
		return decideAnew(), r.reportContact(ctx, s)
	}
	if inDoubt(s.job) {
		return r.settleDoubt(ctx, s)
	}
	learnt := *out
	if engine.Undecided(out.err) {
		learnt.err = nil // it has found drift, whatever else is not known
	}
	m.recordOutcome(&learnt, s.job.Ended)
	same, news, err := showDriftCheck(s.config, s.job, s.driftPolicy())
	if err != nil {
		return ctrl.Result{}, err
	}
	showNetwork(s.config, s.declared())
	if !same {
		m.drifted = true
		if out.err == nil {
			m.weight = weigh(out, r.Clock.Now()) // it is known what a run would disrupt
		}
		if news != "" {
			r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, bootstrapv1.DriftedReason, looking, "%s", short(news))
		}
	}
	r.store(s.config.UID, m)
	if interrupted(out.err) {
		return decideAnew(), nil
	}
	return decideAnew(), r.reportContact(ctx, s)
}

// recordDriftCheck says what came of a check that somebody has asked for.
func recordDriftCheck(s *scope) {
	out := &s.job.Result
	note := "up to date"
	if differs := len(out.report.Checks); differs > 0 && out.plan != nil {
		note = differences(out.plan, out.report.Checks)
	}
	o := record(s, note)
	if out.err == nil {
		o.Differing = ptr.To(int32(len(out.report.Checks)))
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// converging is what the job is called.
const converging = string(bootstrapv1.ConvergeOperation)

// converge makes the host what it must be.
func (r *KubexmConfigReconciler) converge() operation {
	return operation{
		name: bootstrapv1.ConvergeOperation, checks: r.planned(), due: r.convergeIsDue, settle: r.settleConverge,
		show: func(s *scope) {
			delete(s.config.Annotations, bootstrapv1.ConvergedToAnnotation) // it is neither what it was nor what it must be
			showProgress(s.config, s.job)
		},
	}
}

// planned are the checks before what needs a plan of the host.
func (r *KubexmConfigReconciler) planned() []phase {
	return []phase{
		{"wait for prerequisites", r.waitForPrerequisites}, // what a plan cannot do without; all else is for its gates
		{"hold the Machine", r.ensureResetHook},            // before the host is touched: it must be reset once it was
		{"decide what the host needs", r.decideNeed},
	}
}

// decideNeed decides which of the operations with a plan the host needs, if any.
func (r *KubexmConfigReconciler) decideNeed(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	j, err := r.jobFor(ctx, s)
	if err != nil {
		reason := bootstrapv1.PlanFailedReason
		if errors.As(err, new(*invalid)) {
			reason = bootstrapv1.InvalidReason
		}
		setFalse(s.config, bootstrapv1.HostConvergedCondition, reason, err.Error())
		return false, ctrl.Result{RequeueAfter: lastBackoff}, nil
	}
	m, drift := r.cached(s.config.UID), s.driftPolicy()
	if s.owesConverge() {
		drift = spec.DriftRepair
	}
	if s.job != nil {
		if (s.job.What == converging || s.job.What == following) && m.wants != j.input {
			r.Runner.Cancel(s.key, errChanged)
		}
		return false, ctrl.Result{RequeueAfter: askAgain}, nil // see start
	}
	if m == (hostCache{}) {
		m = recall(s.config, j.input, j.lasting, drift)
		r.store(s.config.UID, m) // whatever a look comes to, such as that it is in doubt
	}
	m.recordConverged(s.config, j.input, j.lasting, s.driftPolicy())
	d := m.decide(j.input, s.adopts(), time.Now(), r.driftCheckInterval(s.config.UID), drift)
	if d.act == rest && m.converged && m.input == j.input && waitedForPrerequisites(s.config) {
		d.act = look // what was waited for is there, and what the conditions say of the host is to be found out again
	}
	if m.is(j.input) {
		s.config.Status.ConvergedGeneration = s.config.Generation
	}
	if m.is(j.input) && !m.ended.IsZero() { // others go by it that the host was seen so
		s.config.Status.MembersDigest = bootstrapv1.MembersDigest(s.clusterConfig.Spec.Members)
	}
	if m.is(j.input) && (m.turn || s.clusterConfig.Status.TurnOf(s.config.Name) != nil) {
		after, err := r.givesTurn(ctx, s)
		if err != nil {
			return r.afterTurns(err)
		}
		if m.turn = after > 0; after > 0 {
			d.after = min(d.after, after)
		}
		r.store(s.config.UID, m)
	}
	var held *hold
	if d.act == converges {
		d, held, err = r.admits(ctx, s, &m, j.input)
		if err != nil {
			return r.afterTurns(err)
		}
	}
	if d.act != weighs && (d.act != rest || !m.unweighed()) {
		r.showHold(s, m.weight, held)
	}
	if asked := s.asks(bootstrapv1.CheckDriftOperation); d.act == rest && !asked.IsZero() {
		d.act, j.reportOnly = look, m.input != j.input || !m.converged
	}
	// Of a host that was never examined, a look must not say that it is fit either.
	j.remembered, j.preflight = m.system, !conditions.IsTrue(s.config, bootstrapv1.PreflightPassedCondition)
	s.needed, s.planned = d, j
	return true, ctrl.Result{}, nil
}

func (r *KubexmConfigReconciler) convergeIsDue(_ context.Context, s *scope) (*run, error) {
	if s.needed.act != converges {
		return nil, nil
	}
	j, m := s.planned, r.cached(s.config.UID)
	m.wants, m.adopts = j.input, s.adopts()
	r.store(s.config.UID, m)
	j.asked = s.config.Asked(bootstrapv1.ConvergeAnnotation)
	if limits := s.restriction(); limits.policy.Restricts() {
		j.isLate = func() bool { // a worker's run waits for its place, which may last
			_, held := m.admit(limits, j.input, r.Clock.Now(), r.driftCheckInterval(s.config.UID))
			return held != nil
		}
	}
	return &run{Urgent: s.role() != spec.RoleWorker, Do: j.converge, Lost: j.lost}, nil
}

func (r *KubexmConfigReconciler) settleConverge(ctx context.Context, s *scope) (ctrl.Result, error) {
	showFacts(ctx, s)
	delete(s.config.Annotations, bootstrapv1.ConvergedToAnnotation) // where it was too short to be shown
	return r.settleRun(ctx, s)
}

// settleRun takes in what came of a run, or of finding out what it would disrupt where that has failed: that says what a run would.
func (r *KubexmConfigReconciler) settleRun(ctx context.Context, s *scope) (ctrl.Result, error) {
	m, out := r.cached(s.config.UID), &s.job.Result
	before := m
	isNew := m.recordOutcome(out, s.job.Ended)
	if err := showRun(s.config, s.job, &m); err != nil {
		return ctrl.Result{}, err
	}
	showNetwork(s.config, s.declared())
	if isNew {
		r.announce(s, out, before)
		r.tellAdopted(s, &out.report, converging)
	}
	if m.converged {
		delete(s.config.Annotations, bootstrapv1.ApprovedDisruptionAnnotation) // what it was for is done
	}
	r.store(s.config.UID, m)
	if interrupted(out.err) {
		return decideAnew(), nil
	}
	if err := r.notifyJoined(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return decideAnew(), r.reportContact(ctx, s)
}

// showFacts shows what was seen of the host's certificates and etcd, whatever else came of the job.
func showFacts(ctx context.Context, s *scope) {
	showCertificates(ctx, s.config, &s.job.Result)
	showEtcd(s.config, s.job)
}

// announce tells what came of a run.
func (r *KubexmConfigReconciler) announce(s *scope, out *outcome, before hostCache) {
	switch {
	case interrupted(out.err):
	case out.err != nil:
		message := textOf(out.err)
		if errors.Is(out.err, errPreflight) {
			message = listOf(out.problems)
		}
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "ConvergeFailed", converging, "%s", short(message))
	case !before.converged || before.drifted || out.report.Total().Changed > 0:
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, bootstrapv1.HostConvergedReason, converging,
			"%d steps changed, %d already up to date", out.report.Total().Changed, out.report.Total().Skipped)
	}
}

// waitedForPrerequisites reports whether the conditions say still that something is waited for.
func waitedForPrerequisites(config *bootstrapv1.KubexmConfig) bool {
	return conditions.GetReason(config, bootstrapv1.HostConvergedCondition) == bootstrapv1.WaitingForClusterReason ||
		conditions.GetReason(config, bootstrapv1.HostReachableCondition) == bootstrapv1.WaitingForHostReason
}

// invalid is why no host can become what is declared.
type invalid struct{ error }

func (e *invalid) Unwrap() error { return e.error }

// jobFor is all that a plan on the host needs.
func (r *KubexmConfigReconciler) jobFor(ctx context.Context, s *scope) (*job, error) {
	if err := s.refusesToClose(); err != nil {
		return nil, &invalid{err}
	}
	target, err := targetOf(s)
	if err != nil {
		return nil, &invalid{err}
	}
	versions, err := r.versions(ctx, s.config.Namespace, secretsOf(s.config))
	if err != nil {
		return nil, err
	}
	if asked := s.config.Annotations[bootstrapv1.ConvergeAnnotation]; asked != "" {
		versions = append(versions, bootstrapv1.ConvergeAnnotation+"@"+asked) // another value is another run
	}
	input, err := inputOf(target, s.host, versions)
	if err != nil {
		return nil, err
	}
	lasting, err := lastingOf(target, s.config.Annotations[bootstrapv1.ConvergeAnnotation])
	if err != nil {
		return nil, err
	}
	options := r.optionsFor(s)
	options.Also.Merge(etcdQuery(&target))
	return &job{
		input: input, lasting: lasting, target: target, options: options, planner: r.Plan,
		was: s.config.Status.KubernetesVersion, apiServers: s.clusterConfig.Spec.APIServerVersion,
		members: bootstrapv1.MembersDigest(s.clusterConfig.Spec.Members),
		bundle: func(ctx context.Context) (*artifact.Bundle, error) {
			return r.Artifacts(ctx, target.Cluster.Artifacts, target.KubernetesVersion)
		},
	}, nil
}

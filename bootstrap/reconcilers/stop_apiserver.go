// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	// stopping is what the job is called.
	stopping = string(bootstrapv1.StopAPIServerOperation)
	// stopLimit is for how long it is tried: a host that does not answer must not keep the others waiting for its etcd member to go.
	stopLimit = 2 * time.Minute
	// awayLimit is that of a host that did not answer when it was last tried to be reached: it is likely to be gone.
	awayLimit = 20 * time.Second
	// locateLimit is for how long a host is waited for that the infrastructure does not name, before the others go on without its API
	// server.
	locateLimit = 10 * time.Minute
)

// stopAPIServer ends the API server of a host whose etcd member is about to be removed, once. Without its etcd, it would let everybody
// wait who has a connection to it, load balancers' old processes among them.
func (r *KubexmConfigReconciler) stopAPIServer() operation {
	return operation{name: bootstrapv1.StopAPIServerOperation, due: r.stopIsDue, settle: r.settleStop}
}

func (r *KubexmConfigReconciler) stopIsDue(ctx context.Context, s *scope) (*run, error) {
	if s.hasNoMachine() || !othersHold(s.machine.Annotations) || s.job != nil || !s.withdrawalIsDue() {
		return nil, nil
	}
	if err := r.locate(ctx, s); err != nil {
		return nil, err
	}
	if s.host == nil && !s.lost && !s.skipsReset() {
		m, now := r.cached(s.config.UID), time.Now()
		m.sought = m.seek(now)
		r.store(s.config.UID, m)
		if left := locateLimit - now.Sub(m.sought); left > 0 {
			s.readAgain(left)
			s.needed.after = s.again // its status was lost, and the infrastructure, which is watched, finds the host anew
			return nil, nil
		}
	}
	if s.skipsReset() || s.host == nil {
		r.stopped(s, metav1.ConditionFalse, bootstrapv1.HostNotManagedReason, "the host is not managed, or does not exist: "+
			"its etcd member is removed all the same")
		return nil, nil
	}
	target, err := targetOf(s)
	if err != nil {
		r.stopFailed(s, err)
		return nil, nil
	}
	options, limit := r.optionsFor(s), limitOf(s.config)
	return &run{Urgent: true, Lost: lostOf(time.Time{}), Do: func(ctx context.Context, tell event.Reader) outcome {
		options.Reader = event.Readers(options.Reader, tell)
		return withdraw(ctx, limit, options, target)
	}}, nil
}

// limitOf is for how long it is tried on the host of a KubexmConfig.
func limitOf(c *bootstrapv1.KubexmConfig) time.Duration {
	if !hosthealth.Answers(c) {
		return awayLimit
	}
	return stopLimit
}

func withdraw(ctx context.Context, limit time.Duration, options engine.Options, target spec.Target) (out outcome) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, err := pipeline.WithdrawAPIServer(target)
	if err != nil {
		return outcome{err: fmt.Errorf("plan: %w", err), planFailed: true}
	}
	out.report, out.err = engine.New(options).Run(within, p)
	if out.err != nil && within.Err() != nil && ctx.Err() == nil {
		// Its text alone makes it a failure, and no interruption that is tried again.
		out.err = fmt.Errorf("host %s: its API server did not stop within %s: %s", target.Host.Name, limit, out.err.Error())
	}
	return out
}

// withdrawalIsDue reports whether the host leaves, its API server has an etcd of its own, others stay whose etcd has nothing to do with
// it, and nothing was said yet of its end.
func (s *scope) withdrawalIsDue() bool {
	if s.role() != spec.RoleControlPlane || conditions.Has(s.config, bootstrapv1.APIServerStoppedCondition) {
		return false
	}
	if m := s.member(); m == nil || m.Phase != bootstrapv1.MemberDraining {
		return false
	}
	shared := s.shared()
	return shared.Cluster.Etcd.IsStacked() && shared.Located(spec.RoleControlPlane) > 0
}

// settleStop takes in what came of it. If it has failed, the member goes all the same: the host may be away for good.
func (r *KubexmConfigReconciler) settleStop(_ context.Context, s *scope) (ctrl.Result, error) {
	err := s.job.Result.err
	if interrupted(err) {
		return decideAnew(), nil
	}
	record(s, "")
	if err != nil {
		r.stopFailed(s, err)
		return ctrl.Result{}, nil
	}
	r.stopped(s, metav1.ConditionTrue, bootstrapv1.APIServerStoppedReason, "")
	r.Events.Eventf(s.config, s.machine, corev1.EventTypeNormal, "APIServerStopped", stopping, "its etcd member is about to be removed")
	return ctrl.Result{}, nil
}

// stopped says what came of stopping the API server: from then on the host's etcd member may be removed.
func (r *KubexmConfigReconciler) stopped(s *scope, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(s.config, metav1.Condition{
		Type: bootstrapv1.APIServerStoppedCondition, Status: status, Reason: reason, Message: message,
	})
}

func (r *KubexmConfigReconciler) stopFailed(s *scope, err error) {
	message := "the host's API server may hold open connections until the reset; requests on them may hang: " + short(textOf(err))
	r.stopped(s, metav1.ConditionFalse, bootstrapv1.APIServerNotStoppedReason, message)
	r.Events.Eventf(s.config, s.machine, corev1.EventTypeWarning, "APIServerStopFailed", stopping, "%s", message)
}

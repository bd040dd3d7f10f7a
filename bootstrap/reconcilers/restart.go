// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// restarting is what the job is called.
const restarting = string(bootstrapv1.RestartOperation)

// restart restarts components of a host when an annotation asks for it, once for each time that is its value. It waits for no approval:
// who asks for it has given that.
func (r *KubexmConfigReconciler) restart() operation {
	return operation{
		name: bootstrapv1.RestartOperation, checks: r.planned(), due: r.restartIsDue,
		settle: func(_ context.Context, s *scope) (ctrl.Result, error) { return r.settleRestart(s), nil },
	}
}

func (r *KubexmConfigReconciler) restartIsDue(_ context.Context, s *scope) (*run, error) {
	value, found := s.config.Annotations[bootstrapv1.RestartAnnotation]
	switch {
	case !found:
		return nil, nil
	case s.config.Asked(bootstrapv1.RestartAnnotation).IsZero():
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "RestartFailed", restarting, "the annotation %s has %q: want a time and components, such as %s %s",
			bootstrapv1.RestartAnnotation, short(value), time.Now().UTC().Format(time.RFC3339), spec.JoinComponents(spec.Components[:2]))
		return nil, nil
	case s.config.Status.ConvergedGeneration == 0:
		return nil, nil // the host was never what it must be: it has nothing to restart yet, or that is to be found out
	}
	asked := s.asks(bootstrapv1.RestartAnnotation, bootstrapv1.RestartOperation)
	if asked.IsZero() {
		return nil, nil
	}
	components, err := s.config.AskedRestart()
	return s.engineRun(asked, s.role() != spec.RoleWorker, func(ctx context.Context, options engine.Options, target spec.Target) outcome {
		if err != nil {
			return outcome{err: err, planFailed: true, asked: asked}
		}
		return restartComponents(ctx, options, target, pipeline.Restart{Components: components, Asked: asked})
	}), nil
}

func restartComponents(ctx context.Context, options engine.Options, target spec.Target, restart pipeline.Restart) outcome {
	out, targets := outcome{asked: restart.Asked}, []spec.Target{target}
	p, err := pipeline.RestartComponents(target.ClusterName, targets, restart)
	if err != nil {
		out.err, out.planFailed = err, true
		return out
	}
	restarts, err := pipeline.Restarts(targets, restart)
	if err != nil {
		out.err, out.planFailed = err, true
		return out
	}
	out.note = spec.JoinComponents(restarts[0].Components) + " restarted"
	out.report, out.err = engine.New(options).Run(ctx, p)
	return out
}

// settleRestart takes in what came of it. One that was interrupted goes on where it was. The host is observed soon, whatever it came to.
func (r *KubexmConfigReconciler) settleRestart(s *scope) ctrl.Result {
	out := &s.job.Result
	if interrupted(out.err) {
		return decideAnew()
	}
	took := s.job.Ended.Sub(s.job.Started).Round(100 * time.Millisecond)
	last := record(s, fmt.Sprintf("%s, and well after %s", out.note, took))
	if out.err != nil {
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "RestartFailed", restarting, "%s", last.Message)
	} else {
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, "ComponentsRestarted", restarting, "%s", last.Message)
	}
	r.checkSoon(s)
	return decideAnew()
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// restart restarts components of a host when an annotation asks for it, once for each time that is its value. It waits for no approval:
// who asks for it has given that.
func (r *KubexmConfigReconciler) restart() operation {
	return operation{
		name: bootstrapv1.RestartOperation, checks: r.planned(), due: r.restartIsDue,
		settle: func(_ context.Context, s *scope) (ctrl.Result, error) { return r.settleRestart(s), nil },
	}
}

func (r *KubexmConfigReconciler) restartIsDue(_ context.Context, s *scope) (*run, error) {
	asked := r.requested(s, bootstrapv1.RestartOperation, "RestartFailed",
		"want a time and components, such as %s "+spec.JoinComponents(spec.Components[:2]))
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

// settleRestart takes in what came of it. One that was interrupted goes on where it was.
func (r *KubexmConfigReconciler) settleRestart(s *scope) ctrl.Result {
	return r.settleRequested(s, "RestartFailed", "ComponentsRestarted")
}

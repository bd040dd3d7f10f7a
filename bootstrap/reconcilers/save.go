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
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// saving is what the job is called.
const saving = "SaveEtcd"

// savesEtcd saves a snapshot of etcd on the host if somebody has asked for one, and reports whether it does. It is asked for before hosts
// are replaced, so it is for a host that rests: one that is on its way to something else has none to save yet.
func (r *Config) savesEtcd(s *scope, j *job) bool {
	asked := s.config.Asked(bootstrapv1.SaveEtcdAnnotation)
	if asked.IsZero() || s.config.Status.LastEtcdSnapshot.RequestTime.Time.Equal(asked) {
		return false
	}
	options, target := j.options, j.target
	options.Also = host.Query{} // nothing else is shown of what it sees
	return r.Runner.Start(s.key, hostrun.Job[outcome]{
		What: saving, Urgent: true,
		Lost: func(err error) outcome { return outcome{err: err, asked: asked} },
		Do: func(ctx context.Context, tell event.Reader) outcome {
			options.Reader = event.Readers(options.Reader, tell)
			return save(ctx, options, target, asked)
		},
	})
}

func save(ctx context.Context, options engine.Options, target spec.Target, asked time.Time) outcome {
	p, err := pipeline.SaveEtcd(target, asked)
	if err != nil {
		return outcome{err: fmt.Errorf("plan: %w", err), planFailed: true, asked: asked}
	}
	out := outcome{asked: asked}
	out.report, out.err = engine.New(options).Run(ctx, p)
	return out
}

// takesSnapshot takes in what came of it. One that was interrupted is tried again.
func (r *Config) takesSnapshot(s *scope) (bool, ctrl.Result, error) {
	out := &s.job.Result
	s.ended = true
	again := ctrl.Result{RequeueAfter: time.Millisecond}
	if interrupted(out.err) {
		return false, again, nil
	}
	last := bootstrapv1.EtcdSnapshotStatus{
		RequestTime: metav1.NewTime(out.asked), EndTime: metav1.NewTime(s.job.Ended), Outcome: bootstrapv1.RunSucceeded,
	}
	if out.err == nil {
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, "EtcdSaved", saving, "a snapshot of etcd was saved on the host after %s",
			s.job.Ended.Sub(s.job.Started).Round(time.Millisecond))
	} else {
		last.Outcome, last.Message = bootstrapv1.RunFailed, short(textOf(out.err))
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "EtcdNotSaved", saving, "%s", last.Message)
		if m := r.recall(s.config.UID); m.converged {
			m.ended = time.Time{} // a look follows at once: whether the host answers at all is for that to say
			r.remember(s.config.UID, m)
		}
	}
	s.config.Status.LastEtcdSnapshot = last
	return false, again, nil
}

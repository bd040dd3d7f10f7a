// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/recovery"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
)

// collecting is what the job is called.
const collecting = string(bootstrapv1.CollectLogsOperation)

// collectLimit is how long it may take.
const collectLimit = 2 * time.Minute

// collectLogs keeps what a host has logged if somebody has asked for it. It stops nothing that goes on, and comes before what would be
// next: a host that fails again and again is one that it is for.
func (r *KubexmConfigReconciler) collectLogs() operation {
	return operation{name: bootstrapv1.CollectLogsOperation, due: r.collectLogsIsDue, settle: r.settleLogs}
}

func (r *KubexmConfigReconciler) collectLogsIsDue(_ context.Context, s *scope) (*run, error) {
	asked := s.asks(bootstrapv1.CollectLogsOperation)
	if asked.IsZero() || s.job != nil {
		return nil, nil
	}
	j, keep := r.withoutPlan(s, collecting, asked), r.keeper(s)
	return &run{Urgent: true, Lost: lostOf(asked), Do: func(ctx context.Context, tell event.Reader) outcome {
		return j.collect(ctx, tell, keep)
	}}, nil
}

func (j *withoutPlan) collect(ctx context.Context, tell event.Reader, keep func(context.Context, host.Host) kept) outcome {
	out := outcome{asked: j.asked}
	out.err = j.tell(ctx, tell, func(ctx context.Context) error {
		if keep == nil {
			return errors.New("the manager keeps no logs of hosts: start it with --host-logs-dir")
		}
		within, cancel := context.WithTimeout(ctx, collectLimit)
		defer cancel()
		out.kept = j.keeps(within, keep)
		return out.kept.err
	})
	return out
}

func (r *KubexmConfigReconciler) settleLogs(_ context.Context, s *scope) (ctrl.Result, error) {
	out := &s.job.Result
	if interrupted(out.err) {
		return decideAnew(), nil
	}
	r.tellKept(s, &out.kept)
	record(s, out.kept.file)
	return decideAnew(), nil
}

// kept is what became of a host's logs: the file they are in, or why there is none.
type kept struct {
	file string
	err  error
}

// keeper returns what keeps the logs of the scope's host, nil if that is off.
func (r *KubexmConfigReconciler) keeper(s *scope) func(context.Context, host.Host) kept {
	if r.Logs == "" {
		return nil
	}
	namespace, name := s.config.Namespace, s.host.Name
	return func(ctx context.Context, h host.Host) (k kept) {
		content, err := recovery.Logs(ctx, h, pipeline.Services()...)
		if err != nil {
			return kept{err: err}
		}
		k.file, k.err = r.Logs.Keep(namespace, name, time.Now(), content)
		return k
	}
}

// tellKept says where a host's logs are.
func (r *KubexmConfigReconciler) tellKept(s *scope, k *kept) {
	switch {
	case k.err != nil:
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "HostLogCollectionFailed", collecting, "%s", short(k.err.Error()))
	case k.file != "":
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, "HostLogsCollected", collecting, "what the host has logged is in %s", k.file)
	}
}

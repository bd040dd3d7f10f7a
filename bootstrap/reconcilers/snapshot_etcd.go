// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// etcdSnapshot saves a snapshot of etcd on the host when an annotation asks for one, once for each time that is its value. A host that is
// on its way to something else has none to save yet.
type etcdSnapshot struct {
	name bootstrapv1.OperationType
	// urgent is whether others wait for it.
	urgent bool
	// plan is what saves it, and in which file of the host; "" where that is nobody's business.
	plan func(t spec.Target, asked time.Time) (p *plan.Plan, file string, err error)
	// event is what its events are called, with Saved or Failed behind it.
	event string
}

// saveEtcd is on any control plane host, wherever etcd runs, before hosts are replaced for another version.
var saveEtcd = etcdSnapshot{
	name: bootstrapv1.SaveEtcdOperation, event: "EtcdSnapshot", urgent: true,
	plan: func(t spec.Target, asked time.Time) (*plan.Plan, string, error) {
		p, err := pipeline.SaveEtcd(t, asked)
		return p, "", err
	},
}

// backupEtcd is on the host of a member, where scheduled backups go.
var backupEtcd = etcdSnapshot{
	name: bootstrapv1.BackupEtcdOperation, event: "EtcdBackup", plan: planBackup,
}

// planBackup gives a backup that is run again for the same time the same name.
func planBackup(t spec.Target, asked time.Time) (*plan.Plan, string, error) {
	settings := t.Cluster.Etcd.Backup
	b := pipeline.Backup{Directory: settings.Directory, Keep: settings.Kept(), Asked: asked}
	p, err := pipeline.BackupEtcd(t, b)
	if err != nil {
		return nil, "", err
	}
	name, err := pipeline.BackupName(t, b)
	return p, path.Join(cmp.Or(b.Directory, pipeline.BackupDir), name+".db"), err
}

func (r *KubexmConfigReconciler) snapshotEtcd(e etcdSnapshot) operation {
	return operation{
		name: e.name, checks: r.planned(),
		due:    func(_ context.Context, s *scope) (*run, error) { return e.due(s), nil },
		settle: func(_ context.Context, s *scope) (ctrl.Result, error) { return r.settleSnapshot(s, e.event), nil },
	}
}

func (e *etcdSnapshot) due(s *scope) *run {
	asked := s.asks(e.name)
	if asked.IsZero() {
		return nil
	}
	return s.engineRun(asked, e.urgent, func(ctx context.Context, options engine.Options, target spec.Target) outcome {
		return e.do(ctx, options, target, asked)
	})
}

func (e *etcdSnapshot) do(ctx context.Context, options engine.Options, target spec.Target, asked time.Time) outcome {
	p, file, err := e.plan(target, asked)
	if err != nil {
		return outcome{err: fmt.Errorf("plan: %w", err), planFailed: true, asked: asked}
	}
	out := outcome{asked: asked}
	if out.report, out.err = engine.New(options).Run(ctx, p); out.err == nil && file != "" {
		out.note = "saved as " + file
	}
	return out
}

// settleSnapshot takes in what came of it. One that was interrupted is tried again.
func (r *KubexmConfigReconciler) settleSnapshot(s *scope, kind string) ctrl.Result {
	out := &s.job.Result
	if interrupted(out.err) {
		return decideAnew()
	}
	last := record(s, out.note)
	if out.err != nil {
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, kind+"Failed", s.job.What, "%s", last.Message)
		r.checkSoon(s)
		return decideAnew()
	}
	r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, kind+"Saved", s.job.What, "a snapshot of etcd was saved on the host in %s: %s",
		s.job.Ended.Sub(s.job.Started).Round(time.Millisecond), cmp.Or(out.note, "it goes with the host"))
	return decideAnew()
}

// checkSoon has a converged host compared with its plan at once: whether it answers at all is for that to say.
func (r *KubexmConfigReconciler) checkSoon(s *scope) {
	if m := r.cached(s.config.UID); m.converged {
		m.ended = time.Time{}
		r.store(s.config.UID, m)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Hosts are how the hosts of a plan are reached, and what they must be. The reconciler of KubexmConfigs knows.
type Hosts interface {
	Party(context.Context, *bootstrapv1.KubexmConfig) (*reconcilers.Party, error)
	Together(cluster client.ObjectKey, parties []*reconcilers.Party) engine.Options
}

// Jobs run what is done with several hosts by one plan.
type Jobs = hostrun.Runner[result]

// NewJobs returns Jobs that show progress at most once per throttle. None waits for another.
func NewJobs(ctx context.Context, throttle time.Duration) *Jobs {
	return hostrun.New[result](ctx, 1, throttle)
}

// Causes for which a job is stopped.
var (
	errPaused = errors.New("the Cluster or the KubexmOperation is paused")
	errLetGo  = errors.New("the KubexmOperation lets its hosts go")
	errGone   = errors.New("the KubexmOperation does not exist any more")
)

// result is what a job came to.
type result struct {
	err error
	// interrupted is whether it was stopped from outside: it is begun again.
	interrupted bool
	// manifest is what is said of the backup that was examined.
	manifest backup.Manifest
}

// What jobs are called, in the order in which a restore has them.
const (
	examining = "ExamineBackup"
	sending   = "SendSnapshot"
	restoring = "RestoreEtcd"
)

// hostsProgress is how far each host is.
type hostsProgress struct {
	mu    sync.Mutex
	hosts map[string]*hostrun.Progress
}

// Read takes in an event.
func (p *hostsProgress) Read(ev event.Event) {
	if ev.Host == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts[ev.Host] == nil {
		p.hosts[ev.Host] = &hostrun.Progress{}
	}
	p.hosts[ev.Host].Read(ev)
}

// of is what a host does now, "" if nothing was heard of it yet.
func (p *hostsProgress) of(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.hosts[name]; h != nil {
		return h.Now
	}
	return ""
}

// start starts a job, which outlives the reconcile.
func (r *KubexmOperationReconciler) start(ctx context.Context, s *scope, what string, do func(context.Context, event.Reader) result) {
	shown := &hostsProgress{hosts: map[string]*hostrun.Progress{}}
	r.mu.Lock()
	if r.progress == nil {
		r.progress = map[types.UID]*hostsProgress{}
	}
	r.progress[s.operation.UID] = shown
	r.mu.Unlock()
	r.Jobs.Start(client.ObjectKeyFromObject(s.operation), hostrun.Job[result]{
		What: what, Of: s.operation.UID, Urgent: true, Lost: func(err error) result { return result{err: err} },
		Do: func(ctx context.Context, tell event.Reader) result {
			out := do(ctx, event.Readers(tell, shown))
			if out.err != nil && ctx.Err() != nil {
				out.interrupted = true
			}
			return out
		},
	})
	ctrl.LoggerFrom(ctx).Info("Started a job on several hosts", "job", what, "hosts", len(s.operation.Status.Hosts))
}

// together is what a job of a restore needs.
type together struct {
	cluster string
	parties []*reconcilers.Party
	options engine.Options
	source  backup.Source
	restore pipeline.Restore
}

// examine finds out whether all hosts answer and are the cluster's, and whether the backup is one to be restored there. It changes nothing.
func (t *together) examine(ctx context.Context, tell event.Reader, wanted backup.Wanted) result {
	t.options.Reader = event.Readers(t.options.Reader, tell)
	var names []string
	for _, p := range t.parties {
		names = append(names, p.Target.Host.Name)
	}
	seen, err := engine.New(t.options).Look(ctx, names, func(string) host.Query { return host.Query{} })
	if err != nil {
		return result{err: err}
	}
	for _, name := range names {
		if !seen[name].Changed() {
			return result{err: fmt.Errorf("the host %s was not made a part of the cluster yet: there is no etcd to be restored", name)}
		}
	}
	claim, err := t.options.Ownership(ctx, names[0])
	if err != nil {
		return result{err: err}
	}
	m, err := t.source.Manifest(ctx)
	if err != nil {
		return result{err: fmt.Errorf("the backup cannot be read: %w", err)}
	}
	wanted.Cluster, wanted.Authority = t.cluster, claim.Owner.Authority
	for _, p := range t.parties {
		wanted.KubernetesVersion = p.Target.KubernetesVersion
	}
	if err := m.Fits(wanted); err != nil {
		return result{err: &unfit{fmt.Errorf("the backup is not restored: %w", err)}}
	}
	return result{manifest: m}
}

// unfit is why a backup is not restored, however often that is asked for.
type unfit struct{ error }

// send sends the snapshot to all hosts, and finds out whether it can be restored there. Nothing ends for it.
func (t *together) send(ctx context.Context, tell event.Reader) result {
	return t.run(ctx, tell, pipeline.PreparedRestore)
}

// run makes the plan of the restore so, or the part of it that is picked.
func (t *together) run(ctx context.Context, tell event.Reader, pick func(*plan.Plan) (*plan.Plan, error)) result {
	var all []spec.Target
	for _, p := range t.parties {
		all = append(all, p.Target)
	}
	p, err := pipeline.RestoreEtcd(t.cluster, all, t.restore)
	if err != nil {
		return result{err: err}
	}
	if p, err = pick(p); err != nil {
		return result{err: err}
	}
	t.options.Reader = event.Readers(t.options.Reader, tell)
	t.options.Artifacts = snapshot{from: t.source, digest: t.restore.Digest}
	_, err = engine.New(t.options).Run(ctx, p)
	return result{err: err}
}

// whole picks all of a plan.
func whole(p *plan.Plan) (*plan.Plan, error) { return p, nil }

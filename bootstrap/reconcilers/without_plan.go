// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// withoutPlan is what an operation needs that is no run of a plan: it takes no lock of the host, and writes nothing there, because it is
// for hosts whose disk is full or read-only, too, and for those where another run hangs. It is reported as runs of plans are, so that the
// audit record, the log and metrics have it.
type withoutPlan struct {
	what, host, cluster, holder string
	asked                       time.Time
	dial                        func(context.Context, string) (host.Host, error)
	ownership                   func(context.Context, string) (host.Ownership, error)
	reader                      event.Reader
}

func (r *KubexmConfigReconciler) withoutPlan(s *scope, what string, asked time.Time) withoutPlan {
	return withoutPlan{
		what: what, host: s.host.Name, cluster: s.clusterKey().Name, holder: r.Holder, asked: asked,
		dial: r.dialer(s.config.Namespace, *s.host), ownership: r.ownership(s), reader: r.Reads,
	}
}

// tell does it, as a run of one step. One that is stopped from outside has not failed.
func (j *withoutPlan) tell(ctx context.Context, tell event.Reader, do func(context.Context) error) error {
	readers := event.Readers(j.reader, tell)
	began := time.Now()
	read := func(e event.Event) {
		e.Time, e.Intent, e.Cluster, e.Holder = time.Now(), j.what, j.cluster, j.holder
		readers.Read(e)
	}
	id := string(uuid.NewUUID())
	step := event.Event{Pipeline: id, Host: j.host, Module: "host", Task: j.what, Step: "host/" + j.what, Attempt: 1, Attempts: 1}
	bounds := event.Event{Pipeline: id, Hosts: []string{j.host}, Total: 1}
	with := func(e event.Event, kind event.Type, err error) {
		if e.Type, e.Err = kind, err; kind != event.RunStarted && kind != event.Started {
			e.Duration = time.Since(began)
		}
		if err != nil {
			e.Message = short(err.Error())
		}
		read(e)
	}
	with(bounds, event.RunStarted, nil)
	with(step, event.Started, nil)
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		err = &engine.Error{Cause: context.Cause(ctx)}
	}
	if err != nil {
		with(step, event.Failed, err)
	} else {
		with(step, event.Changed, nil)
		bounds.Done = 1
	}
	with(bounds, event.RunEnded, err)
	return err
}

// admits returns nil if the host may be touched by whom it is claimed for.
func (j *withoutPlan) admits(ctx context.Context, h host.Host) error {
	return admits(ctx, h, func(ctx context.Context) (host.Ownership, error) { return j.ownership(ctx, j.host) })
}

// keeps keeps the host's logs.
func (j *withoutPlan) keeps(ctx context.Context, keep func(context.Context, host.Host) kept) kept {
	h, err := j.dial(ctx, j.host)
	if err != nil {
		return kept{err: err}
	}
	k := kept{err: j.admits(ctx, h)}
	if k.err == nil {
		k = keep(ctx, h)
	}
	if k.file == "" { // else that is what matters
		k.err = errors.Join(k.err, h.Close())
		return k
	}
	_ = h.Close()
	return k
}

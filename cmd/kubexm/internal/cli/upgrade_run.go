// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/plane"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// runUpgrade has the management plane do it: first the control plane, then a pool of workers after the other.
func (a *app) runUpgrade(ctx context.Context, u *upgrade, reader event.Reader) error {
	trust, err := u.trust(true)
	if err != nil {
		return err
	}
	// The plane's own programs are the previous version's until all is done: what newer ones have stored, older ones need not read.
	p, err := plane.Start(ctx, plane.Options{
		Dir: u.dir.Plane(), Namespace: planner.Namespace, Hosts: len(u.known.Hosts), Bundle: u.previous, More: []*artifact.Bundle{u.bundle},
		Reader: reader, Holder: planner.Holder(), OpenSSH: &a.openSSH,
	})
	if err != nil {
		return err
	}
	defer a.stop(ctx, p)
	ctx, cancel := context.WithTimeoutCause(ctx, u.wait, errNotReady)
	defer cancel()
	if err := requireHere(ctx, p.Client(), u.dir, u.known); err != nil {
		return err
	}
	if err := again(ctx, p.Client(), u.Name); err != nil {
		return err
	}
	r := &upgrading{upgrade: u, plane: p, reader: reader}
	// The plane may know another password or key than what the hosts were just reached with.
	s, err := r.read(ctx)
	if err != nil {
		return err
	}
	if err := a.declareAccess(ctx, p.Client(), s, &u.source, u.dir); err != nil {
		return err
	}
	if u.workersOnly {
		if err := r.requireControlPlane(ctx); err != nil {
			return err
		}
	} else if err := r.controlPlane(ctx, trust); err != nil {
		return err
	}
	if !u.controlPlaneOnly {
		for _, pool := range objects.Pools(u.Cluster) {
			if err := r.pool(ctx, pool); err != nil {
				return err
			}
		}
	} else if len(u.workers()) > 0 {
		return nil // it is not up to date yet
	}
	if _, err := a.awaitReady(ctx, u.declared, p); err != nil {
		return err
	}
	return u.finish(trust)
}

// upgrading is an upgrade with the management plane that does it.
type upgrading struct {
	*upgrade
	plane  *embedded.Plane
	reader event.Reader
}

func (r *upgrading) read(ctx context.Context) (*rollout.Snapshot, error) {
	return rollout.Read(ctx, r.plane.Client(), client.ObjectKey{Namespace: planner.Namespace, Name: r.Name})
}

// controlPlane brings the control plane to the version, with etcd and the load balancers.
func (r *upgrading) controlPlane(ctx context.Context, trust *planner.Trust) error {
	all := objects.Of(r.Cluster, objects.Inputs{
		Namespace: planner.Namespace, Endpoint: planner.Endpoint(r.Cluster), Authorities: trust.Authorities, Secrets: trust.Secrets,
		HostKey: r.hosts.HostKey, PrivateKey: r.hosts.PrivateKey,
		JumpHostKey: r.hosts.JumpHostKey, JumpPrivateKey: r.hosts.JumpPrivateKey, Replace: r.replace(),
	})
	all = slices.DeleteFunc(all, func(o client.Object) bool {
		_, is := o.(*controlplanev1.KubexmControlPlane)
		return !is
	})
	if r.acceptRemovedAPIs {
		for _, o := range all {
			o.SetAnnotations(map[string]string{controlplanev1.AcceptedRemovedAPIsAnnotation: r.KubernetesVersion})
		}
	}
	if err := rollout.Try(ctx, r.plane.Client(), all); err != nil {
		return usage("the management plane refuses the upgrade; nothing was changed:\n%w", err)
	}
	if err := r.begin(); err != nil {
		return err
	}
	if _, err := rollout.Apply(ctx, r.plane.Client(), all); err != nil {
		return err
	}
	return r.await(ctx, "control-plane", func(s *rollout.Snapshot) []rollout.Wait { return s.ControlPlaneWaits(r.KubernetesVersion) })
}

// requireControlPlane refuses to begin with workers before the control plane.
func (r *upgrading) requireControlPlane(ctx context.Context) error {
	s, err := r.read(ctx)
	if err != nil {
		return err
	}
	if s.ControlPlane == nil || s.ControlPlane.Spec.Version != r.KubernetesVersion {
		return usage("--workers-only: the control plane does not have %s: upgrade it first, with --control-plane-only or with neither", r.KubernetesVersion)
	}
	return r.begin()
}

// pool brings a pool of workers to the version.
func (r *upgrading) pool(ctx context.Context, pool objects.Pool) error {
	w := rollout.Workers{
		Deployment: pool.Deployment, Version: r.KubernetesVersion, Replace: r.replace(), Unavailable: int32(r.concurrency),
	}
	if slices.Contains(pool.Hosts, r.canary) {
		w.Canary = r.canary
	}
	// Reconcilers change it too.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s, err := r.read(ctx)
		if err != nil {
			return err
		}
		return s.Begin(ctx, r.plane.Client(), w)
	})
	if err != nil {
		return err
	}
	return r.await(ctx, "workers", func(s *rollout.Snapshot) []rollout.Wait { return s.WorkerWaits(w.Deployment, w.Version) })
}

// await waits until nothing is missing, and tells what is.
func (r *upgrading) await(ctx context.Context, what string, missing func(*rollout.Snapshot) []rollout.Wait) error {
	var waits []rollout.Wait
	told, began := "", time.Now()
	for {
		if s, err := r.read(ctx); err == nil {
			if waits = missing(s); len(waits) == 0 {
				return nil
			}
			if s.Exhausted(began) {
				return notReady(r.Name, waits, errExhausted)
			}
			if text := waits[0].On + ": " + waits[0].Message; text != told {
				told = text
				r.reader.Read(event.Event{
					Time: time.Now(), Type: event.Waiting, Intent: "UpgradeCluster", Task: "upgrade", Step: what, Node: "upgrade/" + what,
					Message: strings.ReplaceAll(told, "\n", "; "),
				})
			}
		}
		select {
		case <-r.plane.Done():
			return r.plane.Err()
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errNotReady) {
				return context.Cause(ctx)
			}
			return notReady(r.Name, waits, errNotReady)
		case <-time.After(pollObjects):
		}
	}
}

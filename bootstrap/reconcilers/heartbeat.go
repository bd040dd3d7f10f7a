// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

const (
	// heartbeatsAtOnce is how many hosts are dialled at once that nobody has.
	heartbeatsAtOnce = 20
	// heartbeatLimit is how long one of them may take to let us in and to say what it is.
	heartbeatLimit = 30 * time.Second
	// silentAgain is when a host at the latest is dialled again that could not be used. It is less than the infrastructure provider passes
	// over such a host without hearing more of it.
	silentAgain = 5 * time.Minute
	// leastLook and mostLook bound how often it is asked whose time has come.
	leastLook, mostLook = time.Second, 15 * time.Second
)

// Heartbeats dial the KubexmHosts that nobody has, each once in an interval, as who gets them would dial them: by what they declare, with
// the credentials that their Secrets have. Nothing is changed on a host. A host that somebody has is dialled by its KubexmConfig's runs.
type Heartbeats struct {
	// Client reads from a cache, Reader from the API server.
	Client client.Client
	Reader client.Reader
	// WatchFilter is as for KubexmConfigs.
	WatchFilter string
	// Every is the interval. Hosts are kept apart by a fifth of it.
	Every time.Duration
	Dial  Dial
	// Holder names this process to hosts.
	Holder string

	places  chan struct{}
	going   sync.WaitGroup
	mu      sync.Mutex
	dialled map[types.UID]bool
}

// Start dials hosts until ctx has ended, and waits for those that are being dialled. It runs in one manager at a time.
func (b *Heartbeats) Start(ctx context.Context) error {
	b.places, b.dialled = make(chan struct{}, heartbeatsAtOnce), map[types.UID]bool{}
	defer b.going.Wait()
	look := time.NewTicker(min(max(b.Every/20, leastLook), mostLook))
	defer look.Stop()
	for {
		if err := b.beat(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot tell which hosts are to be dialled that nobody has")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// beat begins to dial the hosts whose time has come, those first that were not dialled for the longest, as far as there are places.
func (b *Heartbeats) beat(ctx context.Context) error {
	all := &infrav1.KubexmHostList{}
	if err := b.Client.List(ctx, all); meta.IsNoMatchError(err) {
		return nil // no host pool is installed
	} else if err != nil {
		return err
	}
	now := time.Now()
	due := slices.DeleteFunc(all.Items, func(h infrav1.KubexmHost) bool { return !b.isDue(&h, now) })
	slices.SortFunc(due, func(x, y infrav1.KubexmHost) int {
		return cmp.Or(x.Status.LastHeartbeatTime.Compare(y.Status.LastHeartbeatTime.Time), cmp.Compare(x.Name, y.Name))
	})
	for i := range due {
		h := &due[i]
		if !b.begins(h.UID) {
			continue
		}
		select {
		case b.places <- struct{}{}:
		default: // the others have their turn at the next look
			b.ends(h.UID)
			return nil
		}
		b.going.Go(func() {
			defer func() { <-b.places }()
			defer b.ends(h.UID)
			b.meet(ctx, h)
		})
	}
	return nil
}

// begins notes that a host is being dialled, and reports whether it was not before.
func (b *Heartbeats) begins(id types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dialled[id] {
		return false
	}
	b.dialled[id] = true
	return true
}

func (b *Heartbeats) ends(id types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.dialled, id)
}

// isDue reports whether a host is to be dialled: nobody has it, nobody works on it, and it was not dialled for long, or declares something
// else since.
func (b *Heartbeats) isDue(h *infrav1.KubexmHost, now time.Time) bool {
	if b.WatchFilter != "" && !labels.HasWatchLabel(h, b.WatchFilter) || h.Spec.ClaimRef != (infrav1.MachineReference{}) ||
		h.IsInMaintenance() || !h.DeletionTimestamp.IsZero() || annotations.HasPaused(h) {
		return false
	}
	reachable, last := conditions.Get(h, infrav1.ReachableCondition), h.Status.LastHeartbeatTime
	if reachable == nil || last.IsZero() || reachable.ObservedGeneration != h.Generation {
		return true
	}
	every := spread(b.Every, h.UID)
	if conditions.IsFalse(h, infrav1.ReachableCondition) {
		every = min(every, silentAgain)
	}
	return now.Sub(last.Time) >= every
}

// meet dials one host, and writes what came of it.
func (b *Heartbeats) meet(ctx context.Context, h *infrav1.KubexmHost) {
	log := ctrl.LoggerFrom(ctx).WithValues("KubexmHost", klog.KObj(h))
	came, err := b.contact(ctx, h)
	if err == nil {
		err = infra.Heartbeat(ctx, b.Client, b.Reader, h, came)
	}
	switch {
	case ctx.Err() != nil || apierrors.IsNotFound(err): // the manager stops, or the KubexmHost is gone
	case err != nil:
		log.Error(err, "Cannot tell whether a host can be used that nobody has")
	default:
		log.V(4).Info("Dialled a host that nobody has", "address", h.Spec.Address, "reason", came.Reason)
	}
}

// contact is what comes of dialling a host. The error means that nothing is known of the host: the management cluster did not say how to
// dial it, or the manager stops.
func (b *Heartbeats) contact(ctx context.Context, h *infrav1.KubexmHost) (infra.Reachability, error) {
	within, cancel := context.WithTimeout(ctx, heartbeatLimit)
	defer cancel()
	r := &KubexmConfigReconciler{Reader: b.Reader, Dial: b.Dial, Holder: b.Holder}
	system, err := func() (*host.System, error) {
		connection, err := r.dialer(h.Namespace, *infra.HostOf(h))(within, h.Name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = connection.Close() }() // nothing was changed there
		facts, err := connection.Observe(within, host.Query{})
		if err != nil {
			return nil, err
		}
		return &facts.System, nil
	}()
	var refused apierrors.APIStatus
	switch {
	case err == nil:
		return infra.Reachability{System: system}, nil
	case ctx.Err() != nil:
		return infra.Reachability{}, ctx.Err()
	case errors.As(err, &refused):
		return infra.Reachability{}, err
	}
	return infra.Reachability{Err: err, Reason: cmp.Or(unreachable(err), bootstrapv1.NotAnsweringReason)}, nil
}

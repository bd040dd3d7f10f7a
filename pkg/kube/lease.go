// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	// leaseDuration is how long a Lease that nobody renews keeps others out: so much does a process that was killed cost the
	// next one.
	leaseDuration = 15 * time.Second
	// renewDeadline is how long a Lease may stay without renewal for its holder to go on. Between the two lies what an action
	// takes to end.
	renewDeadline = leaseDuration - afterwards
	renewEvery    = time.Second
)

var errLeaseLost = errors.New("its Lease could not be renewed in time, and another run may be at work on it")

// alone calls do while no other attempt of kubexm's is at work on the release, in this process or another. An attempt that
// can no longer be sure of that has its context ended well before another may begin. attempt names this one.
func (c *Cluster) alone(ctx context.Context, d *desired, do func(ctx context.Context, attempt string) error) error {
	attempt := rand.Text()
	lock := &failingLock{failed: make(chan error, 1), Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kubexm.release." + d.namespace + "." + d.name},
		Client:    c.typed.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: attempt},
	}}
	taken := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: renewEvery, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leads context.Context) { taken <- leads }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	// The Lease is kept until do has returned, which it does some time after ctx has ended.
	held, letGo := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logr.FromContextOrDiscard(ctx).WithName("lease").V(1)))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(held)
	}()
	defer func() {
		letGo()
		<-ended
	}()
	select {
	case leads := <-taken:
		working, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		defer context.AfterFunc(leads, func() { stop(errLeaseLost) })()
		return do(working, attempt)
	case err := <-lock.failed:
		return fmt.Errorf("taking its Lease %s: %w", lock.Describe(), err)
	case <-ctx.Done():
		return fmt.Errorf("another run of kubexm is at work on it (its Lease is %s): %w", lock.Describe(), context.Cause(ctx))
	}
}

// failingLock tells of requests that failed, which an election goes on trying for good.
type failingLock struct {
	resourcelock.Interface
	failed chan error
}

// Get reads the Lease.
func (l *failingLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	return record, raw, l.tell(err)
}

// Create makes the Lease.
func (l *failingLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.tell(l.Interface.Create(ctx, r))
}

// Update writes the Lease.
func (l *failingLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.tell(l.Interface.Update(ctx, r))
}

// tell passes err on. That somebody else was faster is no failure.
func (l *failingLock) tell(err error) error {
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		select {
		case l.failed <- err:
		default: // the first is reported
		}
	}
	return err
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// leaseOf names the Lease in kube-system by which a group of hosts takes turns.
func leaseOf(group string) string { return "kubexm-" + group }

// TakeTurn takes or renews the turn by a Lease. Each write names the version that it replaces, so of two hosts one has it.
func (c *Cluster) TakeTurn(ctx context.Context, group string, want, over step.Turn) (step.Turn, error) {
	leases := c.typed.CoordinationV1().Leases(metav1.NamespaceSystem)
	fail := func(err error) (step.Turn, error) { return step.Turn{}, c.fail(err, "Lease %s", leaseOf(group)) }
	for {
		lease, err := leases.Get(ctx, leaseOf(group), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseOf(group)}}
			hold(lease, want)
			lease, err = leases.Create(ctx, lease, metav1.CreateOptions{})
		case err != nil:
			return fail(err)
		default:
			if has := turnOf(lease); has.Holder != want.Holder && has.Version != over.Version {
				return has, nil
			}
			hold(lease, want)
			lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			return turnOf(lease), nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
			return fail(err)
		} // somebody else was faster: see who
	}
}

// hold has the Lease say that it is want's turn from now on, or still.
func hold(lease *coordinationv1.Lease, want step.Turn) {
	now := metav1.NowMicro()
	if ptr.Deref(lease.Spec.HolderIdentity, "") != want.Holder {
		lease.Spec.HolderIdentity, lease.Spec.AcquireTime = ptr.To(want.Holder), &now
	}
	lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = ptr.To(int32(want.Term/time.Second)), &now
}

func turnOf(lease *coordinationv1.Lease) step.Turn {
	return step.Turn{
		Holder: ptr.Deref(lease.Spec.HolderIdentity, ""), Version: lease.ResourceVersion,
		Term: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}
}

// HasTurn reports whether the Lease is the holder's.
func (c *Cluster) HasTurn(ctx context.Context, group, holder string) (bool, error) {
	lease, err := c.typed.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, leaseOf(group), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, c.fail(err, "Lease %s", leaseOf(group))
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "") == holder, nil
}

// EndTurn removes the Lease, if it is the holder's.
func (c *Cluster) EndTurn(ctx context.Context, group, holder string) error {
	leases := c.typed.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease, err := leases.Get(ctx, leaseOf(group), metav1.GetOptions{})
	if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == holder {
		err = leases.Delete(ctx, leaseOf(group), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			UID: &lease.UID, ResourceVersion: &lease.ResourceVersion,
		}})
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return c.fail(err, "Lease %s", leaseOf(group))
}

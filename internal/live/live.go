// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live keeps reconcilers from deciding by an old copy of the object that they write, and from overwriting what others
// wrote meanwhile: the object is read from the API server instead of from a cache, and written with an optimistic lock.
package live

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns c with a Get that reads from reader. It is for functions that read an object before they patch it: what a cache
// returns to them may be older than what is patched, so that they would only meet conflicts.
func Client(c client.Client, reader client.Reader) client.Client {
	return liveClient{Client: c, reader: reader}
}

type liveClient struct {
	client.Client
	reader client.Reader
}

func (c liveClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, object, options...)
}

// Object is an object under reconciliation.
type Object struct {
	client client.Client
	reader client.Reader
	// before is as it was read, and now what the reconcile changes.
	before, now client.Object
}

// Get reads an object, a pointer to a struct with a field Status, from the API server. The error may be NotFound.
func Get(ctx context.Context, c client.Client, reader client.Reader, key client.ObjectKey, object client.Object) (*Object, error) {
	if err := reader.Get(ctx, key, object); err != nil {
		return nil, err
	}
	return &Object{client: c, reader: reader, before: copyOf(object), now: object}, nil
}

// retries is how often a status is written anew because others have changed all but the status.
const retries = 3

// Write writes what was changed of the object since Get, first the status, then the rest, which may let the object go. If
// somebody else has written to it meanwhile, it returns a conflict and nothing is lost: the reconcile has to begin again. That
// others have changed all but the status is no conflict for the status alone. An object that is gone is no error.
func (o *Object) Write(ctx context.Context) error {
	base, err := o.writeStatus(ctx)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	before, after := copyOf(o.before), copyOf(o.now)
	statusOf(before).Set(statusOf(base))
	statusOf(after).Set(statusOf(base))
	before.SetResourceVersion(base.GetResourceVersion())
	after.SetResourceVersion(base.GetResourceVersion())
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(o.client.Patch(ctx, after, patch))
}

// writeStatus writes the status if it was changed. It returns the object that the rest may be compared with: what was read, with
// the resource version of the status that was written, unless others have changed the rest, too.
func (o *Object) writeStatus(ctx context.Context) (client.Object, error) {
	base := copyOf(o.before)
	if equality.Semantic.DeepEqual(statusOf(base).Interface(), statusOf(o.now).Interface()) {
		return base, nil
	}
	for attempt := 1; ; attempt++ {
		after := copyOf(base)
		statusOf(after).Set(statusOf(copyOf(o.now)))
		err := o.client.Status().Patch(ctx, after, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			if attempt > 1 { // the rest is not what was read any more
				after.SetResourceVersion(o.before.GetResourceVersion())
			}
			return after, nil
		}
		if !apierrors.IsConflict(err) || attempt > retries {
			return nil, fmt.Errorf("write the status: %w", err)
		}
		latest := copyOf(o.before)
		if err := o.reader.Get(ctx, client.ObjectKeyFromObject(o.now), latest); err != nil {
			return nil, fmt.Errorf("write the status: %w", err)
		}
		if latest.GetUID() != o.before.GetUID() ||
			!equality.Semantic.DeepEqual(statusOf(latest).Interface(), statusOf(o.before).Interface()) {
			return nil, fmt.Errorf("write the status: %w", err)
		}
		base = latest
	}
}

// again is when a reconcile begins again that has met a conflict.
const again = 50 * time.Millisecond

// Close is Write for the end of a reconcile, whose result and error it completes: after a conflict, the reconcile begins again
// soon. It reports whether all was written.
func (o *Object) Close(ctx context.Context, result *ctrl.Result, err *error) (written bool) {
	failed := o.Write(ctx)
	switch {
	case failed == nil:
		return true
	case apierrors.IsConflict(failed):
		ctrl.LoggerFrom(ctx).V(4).Info("Reconciling again, as somebody else has written to the object meanwhile")
		if *err == nil {
			*result = ctrl.Result{RequeueAfter: wait.Jitter(again, 1)}
		}
	default:
		*err = kerrors.NewAggregate([]error{*err, failed})
	}
	return false
}

func copyOf(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }

func statusOf(object client.Object) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName("Status")
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/drain"
)

// DrainOptions say how much may be lost for a Node to become empty.
type DrainOptions struct {
	// Timeout of the whole drain; 0 leaves it to the context.
	Timeout time.Duration
	// GracePeriod for each Pod to end; 0 leaves it to the Pod.
	GracePeriod time.Duration
	// Force deletes Pods that nothing will make again elsewhere; without it they are an error.
	Force bool
	// Evicting, if not nil, is told of each Pod when its eviction begins. It is called from several goroutines.
	Evicting func(namespace, pod string)
}

// unreachableFor is how long a Pod that is being deleted is waited for on a Node whose kubelet does not answer.
const unreachableFor = 60 * time.Second

// Drain cordons a Node and evicts its Pods as kubectl drain does: DaemonSets' and static Pods stay, emptyDir data goes,
// disruption budgets are respected. It waits until the Pods are gone. A Node that is not there is empty.
func (c *Cluster) Drain(ctx context.Context, name string, o DrainOptions) error {
	node, err := c.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return c.fail(err, "Node %s", name)
	}
	if err := c.Cordon(ctx, name); err != nil {
		return err
	}
	if o.Timeout > 0 {
		// Helper.Timeout alone would not do: requests outlive it, by minutes where the server says when to try again.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("not empty after %s", o.Timeout))
		defer cancel()
	}
	h := c.drainer(ctx)
	h.Force, h.Timeout = o.Force, o.Timeout
	if o.GracePeriod > 0 {
		h.GracePeriodSeconds = int(max(o.GracePeriod/time.Second, 1))
	}
	if r := ready(node); r != nil && r.Status == corev1.ConditionUnknown {
		// Nobody will confirm that a Pod has ended.
		h.SkipWaitForDeleteTimeoutSeconds = int(unreachableFor / time.Second)
	}
	if o.Evicting != nil {
		h.OnPodDeletionOrEvictionStarted = func(pod *corev1.Pod, _ bool) { o.Evicting(pod.Namespace, pod.Name) }
	}
	if err := drain.RunNodeDrain(h, name); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return c.fail(err, "draining Node %s", name)
	}
	return nil
}

// drainer evicts as Drain says.
func (c *Cluster) drainer(ctx context.Context) *drain.Helper {
	return &drain.Helper{
		Ctx: ctx, Client: c.typed, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		EvictErrorRetryDelay: 2 * time.Second,
		Out:                  io.Discard, ErrOut: io.Discard,
	}
}

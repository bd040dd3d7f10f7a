// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeReady returns nil when the Node exists, its kubelet says that it is Ready, and the cluster agrees: no taint keeps
// Pods away because of its network or health. Else the error says what is wrong, in the kubelet's own words.
func (c *Cluster) NodeReady(ctx context.Context, name string) error {
	node, err := c.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return c.fail(errors.New("it has not registered; check the kubelet's log on the host"), "Node %s", name)
	case err != nil:
		return c.fail(err, "Node %s", name)
	}
	if err := notReady(node); err != nil {
		return c.fail(err, "Node %s", name)
	}
	return nil
}

// NodeRegistered returns nil when the Node's kubelet is of this version, and reports that it is Ready, or would be if pods had a network.
func (c *Cluster) NodeRegistered(ctx context.Context, name, version string) error {
	node, err := c.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return c.fail(errors.New("it has not registered; check the kubelet's log on the host"), "Node %s", name)
	case err != nil:
		return c.fail(err, "Node %s", name)
	}
	if err := notRegistered(node, version); err != nil {
		return c.fail(err, "Node %s", name)
	}
	return nil
}

// withoutNetwork is what a kubelet says in its condition Ready, whose reason is the same for all that it misses, while there is no
// configuration of pods' network (kubernetes/pkg/kubelet/status.go, runtime.go).
const withoutNetwork = "container runtime network not ready"

// notRegistered returns why a Node is not one that lacks no more than a network, nil if it is.
func notRegistered(node *corev1.Node, version string) error {
	if !node.DeletionTimestamp.IsZero() {
		return errors.New("it is being deleted")
	}
	switch r := ready(node); {
	case r == nil:
		return errors.New("the kubelet has not reported yet whether it is ready")
	case r.Status == corev1.ConditionTrue:
	case r.Status == corev1.ConditionFalse && strings.Contains(r.Message, withoutNetwork):
	default:
		return fmt.Errorf("%s is %s: %s: %s", r.Type, r.Status, r.Reason, r.Message)
	}
	if is := node.Status.NodeInfo.KubeletVersion; is != version {
		return fmt.Errorf("its kubelet reports %s, not %s", is, version)
	}
	return nil
}

// notReady returns why a Node is not ready, nil if it is.
func notReady(node *corev1.Node) error {
	if !node.DeletionTimestamp.IsZero() {
		return errors.New("it is being deleted")
	}
	for _, c := range node.Status.Conditions {
		bad := c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue ||
			c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionTrue
		if bad {
			return fmt.Errorf("%s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if ready(node) == nil {
		return errors.New("the kubelet has not reported yet whether it is ready")
	}
	for _, t := range node.Spec.Taints {
		if t.Effect != corev1.TaintEffectNoSchedule {
			// What ends Pods is removed up to five seconds after the Node is Ready, when the controller manager observes all Nodes
			// again. Pods tolerate it for longer than that, and are placed meanwhile.
			continue
		}
		switch t.Key {
		case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable:
			return fmt.Errorf("it still carries the taint %s; the controller manager removes it", t.ToString())
		}
	}
	return nil
}

func ready(node *corev1.Node) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}

// Nodes returns all Nodes, in the order of their names.
func (c *Cluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	list, err := c.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.fail(err, "listing Nodes")
	}
	return list.Items, nil
}

// DeleteNode deletes the Node object; none is fine. The kubelet registers anew if it still runs.
func (c *Cluster) DeleteNode(ctx context.Context, name string) error {
	if err := c.typed.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return c.fail(err, "deleting Node %s", name)
	}
	return nil
}

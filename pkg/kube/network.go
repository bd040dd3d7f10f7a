// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/kubectl/pkg/util/podutils"
)

// NetworkReady returns nil when the pod network carries the Node's packets: the Pod of the network's DaemonSet there is Ready,
// and it has told the Node that the network is up (the condition NetworkUnavailable is False, not absent). A Node can be Ready
// without, because the kubelet wants no more than a configuration of the network. Else the error says what is missing, and what
// hinders the Pod.
func (c *Cluster) NetworkReady(ctx context.Context, namespace, daemonSet, node string) error {
	if err := c.networkMisses(ctx, namespace, daemonSet, node); err != nil {
		return c.fail(err, "DaemonSet %s/%s on Node %s", namespace, daemonSet, node)
	}
	return nil
}

func (c *Cluster) networkMisses(ctx context.Context, namespace, daemonSet, node string) error {
	pods, err := c.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool {
		owner := metav1.GetControllerOf(&p)
		return owner != nil && owner.Kind == "DaemonSet" && owner.Name == daemonSet && p.DeletionTimestamp.IsZero()
	})
	if i < 0 {
		return fmt.Errorf("it has no Pod there yet; kubectl -n %s describe daemonset %s shows why", namespace, daemonSet)
	}
	pod := &pods.Items[i]
	look := fmt.Sprintf("kubectl -n %s logs %s --all-containers shows why", namespace, pod.Name)
	if !podutils.IsPodReady(pod) {
		if why := hindrance(pod); why != "" {
			return fmt.Errorf("its Pod %s: %s; %s", pod.Name, why, look)
		}
		return fmt.Errorf("its Pod %s is not ready yet", pod.Name)
	}
	n, err := c.typed.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return errors.New("there is no such Node")
	case err != nil:
		return err
	}
	if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionFalse
	}) {
		return fmt.Errorf("its Pod %s runs, and has not said that the network is up (the Node's condition NetworkUnavailable is not False); %s",
			pod.Name, look)
	}
	return nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// shownPods is how many Pods an error tells of.
const shownPods = 3

// WorkloadReady returns nil when the Deployment or DaemonSet has rolled out, by the same measure as kubectl rollout
// status: the controller has seen the newest spec, and all Pods are of it and available. Else the error says how far it
// is, and what hinders its Pods.
func (c *Cluster) WorkloadReady(ctx context.Context, kind, namespace, name string) error {
	var (
		missing  error
		selector *metav1.LabelSelector
		err      error
	)
	switch kind {
	case "Deployment":
		var d *appsv1.Deployment
		if d, err = c.typed.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			missing, selector = deploymentMisses(d), d.Spec.Selector
		}
	case "DaemonSet":
		var d *appsv1.DaemonSet
		if d, err = c.typed.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			missing, selector = daemonSetMisses(d), d.Spec.Selector
		}
	default:
		return fmt.Errorf("nothing is known of the readiness of a %q; use Deployment or DaemonSet", kind)
	}
	if apierrors.IsNotFound(err) {
		err = errors.New("there is none yet")
	}
	if err != nil {
		return c.fail(err, "%s %s/%s", kind, namespace, name)
	}
	if missing == nil {
		return nil
	}
	if pods := c.hindrances(ctx, namespace, selector); len(pods) > 0 {
		missing = fmt.Errorf("%w; %s", missing, strings.Join(pods, "; "))
	}
	return c.fail(missing, "%s %s/%s", kind, namespace, name)
}

// DeploymentRolledOut returns nil when the newest specification of the Deployment was rolled out once: that a Pod of it is away for a while
// afterwards, as when its Node is drained, does not count. Else the error says how far it is, and what hinders its Pods.
func (c *Cluster) DeploymentRolledOut(ctx context.Context, namespace, name string) error {
	d, err := c.typed.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && d.Status.ObservedGeneration >= d.Generation {
		for _, condition := range d.Status.Conditions {
			if condition.Type == appsv1.DeploymentProgressing && condition.Reason == "NewReplicaSetAvailable" {
				return nil
			}
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return c.fail(err, "Deployment %s/%s", namespace, name)
	}
	if err := c.WorkloadReady(ctx, "Deployment", namespace, name); err != nil {
		return err
	}
	return c.fail(errors.New("its rollout is not complete"), "Deployment %s/%s", namespace, name)
}

// deploymentMisses returns what a Deployment lacks of its rollout, nil if nothing.
func deploymentMisses(d *appsv1.Deployment) error {
	want := ptr.Deref(d.Spec.Replicas, 1)
	s := d.Status
	switch {
	case s.ObservedGeneration < d.Generation:
		return errors.New("the controller manager has not seen its newest spec yet")
	case s.UpdatedReplicas < want:
		return fmt.Errorf("%d of %d replicas are of the newest spec%s", s.UpdatedReplicas, want, deadline(d))
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Errorf("%d replicas of older specs are still ending%s", s.Replicas-s.UpdatedReplicas, deadline(d))
	case s.AvailableReplicas < s.UpdatedReplicas:
		return fmt.Errorf("%d of %d replicas are available%s", s.AvailableReplicas, s.UpdatedReplicas, deadline(d))
	}
	return nil
}

// deadline says so if a Deployment's controller has given up hoping: kubectl gives up then, a gate need not.
func deadline(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
			return " (its progress deadline is exceeded)"
		}
	}
	return ""
}

// daemonSetMisses returns what a DaemonSet lacks of its rollout, nil if nothing.
func daemonSetMisses(d *appsv1.DaemonSet) error {
	want, s := d.Status.DesiredNumberScheduled, d.Status
	switch {
	case s.ObservedGeneration < d.Generation:
		return errors.New("the controller manager has not seen its newest spec yet")
	// With OnDelete, old Pods stay until somebody deletes them: that is no reason to wait.
	case s.UpdatedNumberScheduled < want && d.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType:
		return fmt.Errorf("%d of %d Pods are of the newest spec", s.UpdatedNumberScheduled, want)
	case s.NumberAvailable < want:
		return fmt.Errorf("%d of %d Pods are available", s.NumberAvailable, want)
	}
	return nil
}

// hindrances says of a workload's Pods why they are not ready. It is an addition to an error, so its own do not matter.
func (c *Cluster) hindrances(ctx context.Context, namespace string, selector *metav1.LabelSelector) []string {
	labels, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	pods, err := c.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.String(), Limit: 100})
	if err != nil {
		return nil
	}
	var all []string
	for i := range pods.Items {
		if why := hindrance(&pods.Items[i]); why != "" && len(all) < shownPods {
			all = append(all, fmt.Sprintf("Pod %s: %s", pods.Items[i].Name, why))
		}
	}
	return all
}

// hindrance returns why a Pod is not ready, or "" if it is or just takes its time.
func hindrance(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	for _, s := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		waiting, last := s.State.Waiting, s.LastTerminationState.Terminated
		switch {
		case waiting != nil && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
			return strings.TrimSuffix(fmt.Sprintf("container %s: %s: %s", s.Name, waiting.Reason, waiting.Message), ": ")
		case !s.Ready && last != nil && s.RestartCount > 0:
			return fmt.Sprintf("container %s: restarted %d times, last exit code %d (%s)", s.Name, s.RestartCount, last.ExitCode, last.Reason)
		}
	}
	return ""
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	budgetName      = "kubexm-budget"
	budgetNamespace = metav1.NamespaceDefault
	lookEvery       = 200 * time.Millisecond
)

// Budget is a Deployment and the PodDisruptionBudget that says how many of its Pods must stay available.
type Budget struct {
	Client kubernetes.Interface
	// Replicas is how many Pods there are, and Least how many must be available at any time.
	Replicas, Least int32
	// Image is that of the Pods, which do nothing. Hosts must have it.
	Image string
}

// Deploy makes both, and waits until all Pods are available.
func (b *Budget) Deploy(ctx context.Context) error {
	labels := map[string]string{"app": budgetName}
	meta := metav1.ObjectMeta{Name: budgetName, Namespace: budgetNamespace}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(b.Replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "pause", Image: b.Image}},
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			// One on each worker, so that each drain has one to move.
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			}},
		}},
	}}
	if _, err := b.Client.AppsV1().Deployments(budgetNamespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the Deployment %s: %w", budgetName, err)
	}
	least := intstr.FromInt32(b.Least)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: labels},
	}}
	if _, err := b.Client.PolicyV1().PodDisruptionBudgets(budgetNamespace).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the PodDisruptionBudget %s: %w", budgetName, err)
	}
	err := wait.PollUntilContextTimeout(ctx, lookEvery, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		n, err := b.available(ctx)
		return err == nil && n == b.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("the Deployment %s does not become available: %w", budgetName, err)
	}
	return nil
}

// Watch observes the Pods until the function that it returns is called, which says how few were available at one time, and how
// often that was observed. It is an error if they were fewer than Least. While the API does not answer, nothing is seen.
func (b *Budget) Watch(ctx context.Context) (end func() (seen string, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	var fewest, looks int32 = b.Replicas, 0
	done.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if n, err := b.available(ctx); err == nil {
				fewest, looks = min(fewest, n), looks+1
			}
		}
	})
	return func() (string, error) {
		cancel()
		done.Wait()
		switch {
		case looks == 0:
			return "", fmt.Errorf("the Deployment %s could not be observed", budgetName)
		case fewest < b.Least:
			return "", fmt.Errorf("%d Pods of the Deployment %s were available at one time, whose budget says %d", fewest, budgetName, b.Least)
		}
		return fmt.Sprintf("of %d Pods with a budget of %d, %d were available at least, in %d looks", b.Replicas, b.Least, fewest, looks), nil
	}
}

func (b *Budget) available(ctx context.Context) (int32, error) {
	d, err := b.Client.AppsV1().Deployments(budgetNamespace).Get(ctx, budgetName, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return d.Status.AvailableReplicas, nil
}

// Pods are the names of the Pods that are not about to go, with the Nodes that they are on.
func (b *Budget) Pods(ctx context.Context) (map[string]string, error) {
	list, err := b.Client.CoreV1().Pods(budgetNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + budgetName})
	if err != nil {
		return nil, err
	}
	on := map[string]string{}
	for _, p := range list.Items {
		if p.DeletionTimestamp.IsZero() {
			on[p.Name] = p.Spec.NodeName
		}
	}
	return on, nil
}

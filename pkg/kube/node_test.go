// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
)

func TestNodeReady(t *testing.T) {
	c, client := api(t)
	wantError(t, c.Healthy(canceled(t)), "API server "+c.Server())
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	wantError(t, c.NodeReady(t.Context(), "n1"), "Node n1: it has not registered", c.Server())

	// The server itself taints a Node that registers; here is neither kubelet nor controller manager to go on from there.
	node := must[*corev1.Node](t)(client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{}))
	wantError(t, c.NodeReady(t.Context(), "n1"), "has not reported yet")
	status := func(condition string) {
		t.Helper()
		must[*corev1.Node](t)(client.CoreV1().Nodes().Patch(t.Context(), "n1", types.StrategicMergePatchType, []byte(`{"status":{"conditions":[`+condition+`]}}`), metav1.PatchOptions{}, "status"))
	}
	status(`{"type":"Ready","status":"False","reason":"KubeletNotReady","message":"container runtime network not ready: cni plugin not initialized"}`)
	wantError(t, c.NodeReady(t.Context(), "n1"), "container runtime network not ready: cni plugin not initialized")
	status(`{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status"}`)
	wantError(t, c.NodeReady(t.Context(), "n1"), "taint node.kubernetes.io/not-ready")
	must[*corev1.Node](t)(client.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}))
	if err := c.NodeReady(t.Context(), "n1"); err != nil {
		t.Error(err)
	}

	unschedulable := func() bool {
		return must[*corev1.Node](t)(client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})).Spec.Unschedulable
	}
	if err := c.Cordon(t.Context(), "n1"); err != nil || !unschedulable() {
		t.Errorf("Cordon: %v", err)
	}
	if err := c.Uncordon(t.Context(), "n1"); err != nil || unschedulable() {
		t.Errorf("Uncordon: %v", err)
	}
	if nodes := must[[]corev1.Node](t)(c.Nodes(t.Context())); !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == "n1" }) {
		t.Errorf("n1 is not among %d Nodes", len(nodes))
	}
	for range 2 {
		if err := c.DeleteNode(t.Context(), "n1"); err != nil {
			t.Error(err)
		}
	}
	wantError(t, c.Cordon(t.Context(), "n1"), "not found")
	if err := c.Drain(t.Context(), "n1", kube.DrainOptions{}); err != nil {
		t.Errorf("draining a Node that is not there: %v", err)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestWorkloadReady(t *testing.T) {
	c, client := api(t)
	ns := namespace(t, client)
	wantError(t, c.WorkloadReady(t.Context(), "Deployment", ns, "coredns"), "Deployment "+ns+"/coredns: there is none yet")
	wantError(t, c.WorkloadReady(t.Context(), "Job", ns, "x"), `"Job"`)
	if err := c.Apply(t.Context(), []byte(strings.ReplaceAll(workload, "NAMESPACE", ns))); err != nil {
		t.Fatal(err)
	}
	wantError(t, c.WorkloadReady(t.Context(), "Deployment", ns, "coredns"), "has not seen its newest spec")
	status := func(available int) {
		t.Helper()
		patch := fmt.Sprintf(`{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":%d,"availableReplicas":%d}}`, available, available)
		must[*appsv1.Deployment](t)(client.AppsV1().Deployments(ns).Patch(t.Context(), "coredns", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"))
	}
	status(0)
	pod := must[*corev1.Pod](t)(client.CoreV1().Pods(ns).Create(t.Context(), pod("coredns-1", "", map[string]string{"app": "coredns"}, nil), metav1.CreateOptions{}))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}}}}
	must[*corev1.Pod](t)(client.CoreV1().Pods(ns).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}))
	wantError(t, c.WorkloadReady(t.Context(), "Deployment", ns, "coredns"), "0 of 1 replicas are available; Pod coredns-1: container a: ErrImagePull: no such image")
	status(1)
	if err := c.WorkloadReady(t.Context(), "Deployment", ns, "coredns"); err != nil {
		t.Error(err)
	}
}

func pod(name, node string, labels map[string]string, owner metav1.Object) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
	switch owner.(type) {
	case *appsv1.DaemonSet:
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	case *appsv1.ReplicaSet:
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
	return p
}

// kubelet ends the Pods of a Node that are being deleted, as the real one does, until the test ends.
func kubelet(t *testing.T, client *kubernetes.Clientset, ns string) {
	t.Helper()
	pods, err := client.CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for e := range pods.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok || p.DeletionTimestamp.IsZero() {
				continue
			}
			err := client.CoreV1().Pods(ns).Delete(context.Background(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
	t.Cleanup(func() {
		pods.Stop()
		done.Wait()
	})
}

func TestDrain(t *testing.T) {
	c, client := api(t)
	ns := namespace(t, client)
	labels := map[string]string{"app": "a"}
	must[*corev1.Node](t)(client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "drained"}}, metav1.CreateOptions{}))
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("", "", nil, nil).Spec}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	ds := must[*appsv1.DaemonSet](t)(client.AppsV1().DaemonSets(ns).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "ds"}, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{}))
	rs := must[*appsv1.ReplicaSet](t)(client.AppsV1().ReplicaSets(ns).Create(t.Context(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "rs"}, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{}))
	for _, p := range []*corev1.Pod{pod("of-ds", "drained", labels, ds), pod("of-rs", "drained", labels, rs), pod("bare", "drained", nil, nil), pod("elsewhere", "other", nil, nil)} {
		p = must[*corev1.Pod](t)(client.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{}))
		p.Status.Phase = corev1.PodRunning // a budget does not protect what has never run
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		must[*corev1.Pod](t)(client.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}))
	}
	names := func() []string {
		var all []string
		for _, p := range must[*corev1.PodList](t)(client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})).Items {
			all = append(all, p.Name)
		}
		return all
	}

	wantError(t, c.Drain(t.Context(), "drained", kube.DrainOptions{}), "draining Node drained", ns+"/bare")
	if got := names(); len(got) != 4 {
		t.Errorf("a refused drain left %q", got)
	}
	if !must[*corev1.Node](t)(client.CoreV1().Nodes().Get(t.Context(), "drained", metav1.GetOptions{})).Spec.Unschedulable {
		t.Error("the Node is not cordoned")
	}

	// A budget that allows nothing holds the drain up until its time is over.
	budget := must[*policyv1.PodDisruptionBudget](t)(client.PolicyV1().PodDisruptionBudgets(ns).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: ptr.To(intstr.FromString("100%"))},
	}, metav1.CreateOptions{}))
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, CurrentHealthy: 2, DesiredHealthy: 2, ExpectedPods: 2}
	must[*policyv1.PodDisruptionBudget](t)(client.PolicyV1().PodDisruptionBudgets(ns).UpdateStatus(t.Context(), budget, metav1.UpdateOptions{}))
	kubelet(t, client, ns)
	var evicted sync.Map
	o := kube.DrainOptions{Timeout: 3 * time.Second, GracePeriod: time.Second, Force: true, Evicting: func(namespace, pod string) { evicted.Store(namespace+"/"+pod, true) }}
	wantError(t, c.Drain(t.Context(), "drained", o), `"of-rs"`, "not empty after 3s")
	if got := names(); !same(got, []string{"elsewhere", "of-ds", "of-rs"}) {
		t.Errorf("the budget left %q", got)
	}

	if err := client.PolicyV1().PodDisruptionBudgets(ns).Delete(t.Context(), budget.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.Timeout = time.Minute
	if err := c.Drain(t.Context(), "drained", o); err != nil {
		t.Fatal(err)
	}
	if got := names(); !same(got, []string{"elsewhere", "of-ds"}) {
		t.Errorf("the drain left %q", got)
	}
	if _, told := evicted.Load(ns + "/of-rs"); !told {
		t.Error("nobody was told of the eviction")
	}
	if err := c.Drain(canceled(t), "drained", o); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled drain returned %v", err)
	}
}

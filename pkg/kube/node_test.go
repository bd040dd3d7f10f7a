// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNodeReady(t *testing.T) {
	c, client := api(t)
	wantError(t, c.Healthy(canceled(t)), "API server "+c.Server())
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	wantError(t, c.NodeReady(t.Context(), "n1"), "Node n1: it has not registered", c.Server())

	// The server itself taints a Node that registers; here is neither kubelet nor controller manager to go on from there.
	must[*corev1.Node](t)(client.CoreV1().Nodes().Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{}))
	wantError(t, c.NodeReady(t.Context(), "n1"), "has not reported yet")
	status := func(condition string) {
		t.Helper()
		must[*corev1.Node](t)(client.CoreV1().Nodes().Patch(t.Context(), "n1", types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[`+condition+`]}}`), metav1.PatchOptions{}, "status"))
	}
	status(`{"type":"Ready","status":"False","reason":"KubeletNotReady","message":"container runtime network not ready: cni plugin not initialized"}`)
	wantError(t, c.NodeReady(t.Context(), "n1"), "container runtime network not ready: cni plugin not initialized")
	status(`{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status"}`)
	wantError(t, c.NodeReady(t.Context(), "n1"), "taint node.kubernetes.io/not-ready")
	must[*corev1.Node](t)(client.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}))
	if err := c.NodeReady(t.Context(), "n1"); err != nil {
		t.Error(err)
	}

	if nodes := must[[]corev1.Node](t)(c.Nodes(t.Context())); !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == "n1" }) {
		t.Errorf("n1 is not among %d Nodes", len(nodes))
	}
	for range 2 {
		if err := c.DeleteNode(t.Context(), "n1"); err != nil {
			t.Error(err)
		}
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
		must[*appsv1.Deployment](t)(client.AppsV1().Deployments(ns).Patch(t.Context(),
			"coredns", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"))
	}
	status(0)
	pod := must[*corev1.Pod](t)(client.CoreV1().Pods(ns).Create(t.Context(),
		pod("coredns-1", "", map[string]string{"app": "coredns"}, nil), metav1.CreateOptions{}))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}}},
	}
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

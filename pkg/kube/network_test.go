// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNetworkReady(t *testing.T) {
	c, client := api(t)
	ns := namespace(t, client)
	ready := func() error { return c.NetworkReady(t.Context(), ns, "net", "netted") }
	wantError(t, ready(), "DaemonSet "+ns+"/net on Node netted: it has no Pod there yet", "kubectl -n "+ns+" describe daemonset net", c.Server())

	labels := map[string]string{"app": "net"}
	set := func(name string) *appsv1.DaemonSet {
		return must[*appsv1.DaemonSet](t)(client.AppsV1().DaemonSets(ns).Create(t.Context(), &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("", "", nil, nil).Spec},
			},
		}, metav1.CreateOptions{}))
	}
	net, other := set("net"), set("other")
	add := func(name, node string, owner *appsv1.DaemonSet) *corev1.Pod {
		return must[*corev1.Pod](t)(client.CoreV1().Pods(ns).Create(t.Context(), pod(name, node, labels, owner), metav1.CreateOptions{}))
	}
	report := func(p *corev1.Pod, ready corev1.ConditionStatus, state corev1.ContainerState) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", Ready: ready == corev1.ConditionTrue, State: state}}
		*p = *must[*corev1.Pod](t)(client.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}))
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	report(add("net-elsewhere", "elsewhere", net), corev1.ConditionTrue, running)
	report(add("other-1", "netted", other), corev1.ConditionTrue, running)
	wantError(t, ready(), "it has no Pod there yet")

	p := add("net-1", "netted", net)
	wantError(t, ready(), "its Pod net-1 is not ready yet")
	report(p, corev1.ConditionFalse, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container",
	}})
	wantError(t, ready(), "its Pod net-1: container a: CrashLoopBackOff: back-off 10s restarting failed container", "kubectl -n "+ns+" logs net-1")
	report(p, corev1.ConditionTrue, running)
	wantError(t, ready(), "there is no such Node")

	must[*corev1.Node](t)(client.CoreV1().Nodes().Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "netted"}}, metav1.CreateOptions{}))
	unavailable := func(status string) {
		t.Helper()
		patch := `{"status":{"conditions":[{"type":"NetworkUnavailable","status":"` + status + `"}]}}`
		must[*corev1.Node](t)(client.CoreV1().Nodes().Patch(t.Context(), "netted",
			types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"))
	}
	wantError(t, ready(), "its Pod net-1 runs, and has not said that the network is up")
	unavailable("True")
	wantError(t, ready(), "its Pod net-1 runs, and has not said that the network is up")
	unavailable("False")
	if err := ready(); err != nil {
		t.Error(err)
	}
}

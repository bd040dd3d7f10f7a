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
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// readyNode makes a Node that is Ready with a version.
func readyNode(t *testing.T, client *kubernetes.Clientset, name, version string, taints ...corev1.Taint) {
	t.Helper()
	n, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Spec:       corev1.NodeSpec{Taints: taints},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}) })
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.NodeInfo.KubeletVersion = version
	if n, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Admission adds a taint to new Nodes that a controller removes.
	n.Spec.Taints = taints
	if _, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// podOn makes a Pod on a Node, of a controller of that kind or of none.
func podOn(t *testing.T, client *kubernetes.Clientset, namespace, name, node, kind string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: ptr.To[int64](0),
		},
	}
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: types.UID("owner"), Controller: ptr.To(true)},
		}
	}
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func gone(t *testing.T, client *kubernetes.Clientset, namespace, name string) bool {
	t.Helper()
	_, err := client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil
}

func nodeOf(t *testing.T, client *kubernetes.Clientset, name string) *corev1.Node {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDrainNode(t *testing.T) {
	c, client := api(t)
	ns := namespace(t, client)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: ns}}
	if _, err := client.CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	readyNode(t, client, "drain-a", "v1.35.4")
	podOn(t, client, ns, "alone", "drain-a", "")
	podOn(t, client, ns, "replica", "drain-a", "ReplicaSet")

	// The only Node that takes Pods is not emptied: they would have nowhere to go.
	readyNode(t, client, "drain-tainted", "v1.35.4", corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})
	if err := c.DrainNode(t.Context(), "drain-a"); err != nil {
		t.Fatal(err)
	}
	if n := nodeOf(t, client, "drain-a"); !n.Spec.Unschedulable || n.Annotations[kube.MaintenanceAnnotation] == "" {
		t.Errorf("the Node is not held: %v %v", n.Spec, n.Annotations)
	}
	if gone(t, client, ns, "replica") {
		t.Error("a Pod was evicted that has nowhere to go")
	}

	// With another, one that was uncordoned a moment ago, Pods go that somebody makes again; drained again is drained.
	readyNode(t, client, "drain-b", "v1.35.4", corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	for range 2 {
		if err := c.DrainNode(t.Context(), "drain-a"); err != nil {
			t.Fatal(err)
		}
	}
	if !gone(t, client, ns, "replica") || gone(t, client, ns, "alone") {
		t.Errorf("gone are: the replica %t, the Pod of nobody %t", gone(t, client, ns, "replica"), gone(t, client, ns, "alone"))
	}
	if err := c.EndMaintenance(t.Context(), "drain-a", nil); err != nil {
		t.Fatal(err)
	}
	if n := nodeOf(t, client, "drain-a"); n.Spec.Unschedulable || len(n.Annotations) > 0 {
		t.Errorf("the Node is not released: %v %v", n.Spec, n.Annotations)
	}
	if err := c.DrainNode(t.Context(), "nobody"); err != nil {
		t.Errorf("a Node that is not there: %v", err)
	}
}

// A budget that lets nothing go ends with the context, and the error says which Pod it is.
func TestDrainNodeRespectsBudgets(t *testing.T) {
	c, client := api(t)
	ns := namespace(t, client)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: ns}}
	if _, err := client.CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	readyNode(t, client, "budget-a", "v1.35.4")
	readyNode(t, client, "budget-b", "v1.35.4")
	podOn(t, client, ns, "kept", "budget-a", "ReplicaSet")
	none := intstr.FromInt32(0)
	if _, err := client.PolicyV1().PodDisruptionBudgets(ns).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kept"}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods(ns).Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}
	if _, err := client.CoreV1().Pods(ns).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errors.New("no more patience"))
	defer cancel()
	if err := c.DrainNode(ctx, "budget-a"); err == nil || !strings.Contains(err.Error(), "draining Node budget-a: no more patience") {
		t.Errorf("got %v", err)
	}
	if gone(t, client, ns, "kept") {
		t.Error("the budget was not respected")
	}
}

// cordon has somebody else keep Pods away from a Node, or let them come again.
func cordon(t *testing.T, client *kubernetes.Clientset, name string, yes bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, yes)
	if _, err := client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Who was cordoned before stays so.
func TestEndMaintenanceLeavesCordonsOfOthers(t *testing.T) {
	c, client := api(t)
	readyNode(t, client, "cordoned", "v1.35.4")
	cordon(t, client, "cordoned", true)
	if err := c.EndMaintenance(t.Context(), "cordoned", nil); err != nil || !nodeOf(t, client, "cordoned").Spec.Unschedulable {
		t.Errorf("a Node that is not held was uncordoned: %v", err)
	}
	if err := c.DrainNode(t.Context(), "cordoned"); err != nil {
		t.Fatal(err)
	}
	if held, err := c.NodeInMaintenance(t.Context(), "cordoned"); err != nil || !held {
		t.Errorf("held: %t, %v", held, err)
	}
	if err := c.EndMaintenance(t.Context(), "cordoned", nil); err != nil {
		t.Fatal(err)
	}
	if n := nodeOf(t, client, "cordoned"); !n.Spec.Unschedulable || len(n.Annotations) > 0 {
		t.Errorf("want it cordoned and not held: %v %v", n.Spec, n.Annotations)
	}
	if held, err := c.NodeInMaintenance(t.Context(), "cordoned"); err != nil || held {
		t.Errorf("held: %t, %v", held, err)
	}
}

// Who was cordoned before, and is uncordoned while it is held, takes Pods again when that ends, also after it was drained once more.
func TestEndMaintenanceKeepsWhatSomebodyUncordoned(t *testing.T) {
	c, client := api(t)
	readyNode(t, client, "uncordoned", "v1.35.4")
	cordon(t, client, "uncordoned", true)
	drain := func() {
		t.Helper()
		if err := c.DrainNode(t.Context(), "uncordoned"); err != nil {
			t.Fatal(err)
		}
		if !nodeOf(t, client, "uncordoned").Spec.Unschedulable {
			t.Error("a Node that is held takes Pods")
		}
	}
	drain()
	since := nodeOf(t, client, "uncordoned").Annotations[kube.MaintenanceAnnotation]
	awaitNextSecond(t) // a time that is written anew would be another
	cordon(t, client, "uncordoned", false)
	for range 2 { // the second time it is cordoned by us
		drain()
	}
	if n := nodeOf(t, client, "uncordoned"); n.Annotations[kube.MaintenanceAnnotation] != since {
		t.Errorf("it is held since %v, and was since %s", n.Annotations, since)
	}
	if err := c.EndMaintenance(t.Context(), "uncordoned", nil); err != nil {
		t.Fatal(err)
	}
	if n := nodeOf(t, client, "uncordoned"); n.Spec.Unschedulable || len(n.Annotations) > 0 {
		t.Errorf("want it neither cordoned nor held: %v %v", n.Spec, n.Annotations)
	}
}

// A DaemonSet's Pod that is older than the maintenance is made anew, once, and waited for.
// Pods of a Node are renewed whether or not the API server keeps track of who manages its fields, as it does not for a Node that was made
// without any.
func TestEndMaintenanceRenewsPods(t *testing.T) {
	for _, tracked := range []bool{true, false} {
		t.Run(fmt.Sprintf("tracked=%t", tracked), func(t *testing.T) { releaseNodeRenewsPods(t, tracked) })
	}
}

func releaseNodeRenewsPods(t *testing.T, tracked bool) {
	c, client := api(t)
	const ns, ds = metav1.NamespaceSystem, "renewed"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: ns}}
	if _, err := client.CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	labels := map[string]string{"app": ds}
	if _, err := client.AppsV1().DaemonSets(ns).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: ds},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	readyNode(t, client, "renewing", "v1.36.3")
	if !tracked {
		untracked := []byte(`{"metadata":{"managedFields":[{}]}}`)
		if _, err := client.CoreV1().Nodes().Patch(t.Context(), "renewing", types.MergePatchType, untracked, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = client.AppsV1().DaemonSets(ns).Delete(context.Background(), ds, metav1.DeleteOptions{})
		_ = client.CoreV1().Pods(ns).Delete(context.Background(), ds, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	})
	pod := func() {
		t.Helper()
		if _, err := client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: ds, Labels: labels},
			Spec: corev1.PodSpec{
				NodeName: "renewing", Containers: []corev1.Container{{Name: "c", Image: "i"}}, TerminationGracePeriodSeconds: ptr.To[int64](0),
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod()
	awaitNextSecond(t) // the Pod is older than the maintenance, and the Node not younger than the Pod
	if err := c.DrainNode(t.Context(), "renewing"); err != nil {
		t.Fatal(err)
	}
	if is := len(nodeOf(t, client, "renewing").ManagedFields) > 0; is != tracked {
		t.Fatalf("its fields are tracked: %t, want %t", is, tracked)
	}
	awaitNextSecond(t) // the API tells times in seconds
	notYet := func(want string) {
		t.Helper()
		var n *step.NotYet
		if err := c.EndMaintenance(t.Context(), "renewing", []string{ds}); !errors.As(err, &n) || !strings.Contains(n.Reason, want) {
			t.Fatalf("got %v, want not yet: %s", err, want)
		}
	}
	notYet("Pod renewed ends")
	notYet("it has no Pod there yet")
	pod()
	notYet("Pod renewed is not Ready")
	p, err := client.CoreV1().Pods(ns).Get(t.Context(), ds, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := client.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.EndMaintenance(t.Context(), "renewing", []string{ds, "not-there"}); err != nil {
		t.Fatal(err)
	}
	if n := nodeOf(t, client, "renewing"); n.Spec.Unschedulable || len(n.Annotations) > 0 {
		t.Errorf("the Node is not released: %v %v", n.Spec, n.Annotations)
	}
}

func awaitNextSecond(t *testing.T) {
	t.Helper()
	now := time.Now()
	timer := time.NewTimer(now.Truncate(time.Second).Add(time.Second).Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

func TestNodeVersion(t *testing.T) {
	c, client := api(t)
	readyNode(t, client, "versioned", "v1.35.4")
	if err := c.NodeVersion(t.Context(), "versioned", "v1.35.4"); err != nil {
		t.Error(err)
	}
	if err := c.NodeVersion(t.Context(), "versioned", "v1.36.3"); err == nil || !strings.Contains(err.Error(), "its kubelet reports v1.35.4, not v1.36.3") {
		t.Errorf("got %v", err)
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil || !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == "versioned" }) {
		t.Errorf("%v, %v", nodes, err)
	}
}

// TestNodeRegistered: without a network a Node is in use once its kubelet reports that, and nothing else, in the right version.
func TestNodeRegistered(t *testing.T) {
	c, client := api(t)
	readyNode(t, client, "registered", "v1.36.3")
	says := func(status corev1.ConditionStatus, message string) {
		t.Helper()
		node, err := client.CoreV1().Nodes().Get(t.Context(), "registered", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range node.Status.Conditions {
			if r := &node.Status.Conditions[i]; r.Type == corev1.NodeReady {
				r.Status, r.Reason, r.Message = status, "KubeletNotReady", message
			}
		}
		if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const noNetwork = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
	for _, row := range []struct {
		status        corev1.ConditionStatus
		message, want string
	}{
		{corev1.ConditionTrue, "kubelet is posting ready status", ""},
		{corev1.ConditionFalse, noNetwork, ""},
		{corev1.ConditionFalse, "[" + noNetwork + ", CSINode is not yet initialized]", ""},
		{corev1.ConditionFalse, "container runtime is down", "Ready is False: KubeletNotReady: container runtime is down"},
		{corev1.ConditionUnknown, noNetwork, "Ready is Unknown"},
	} {
		says(row.status, row.message)
		err := c.NodeRegistered(t.Context(), "registered", "v1.36.3")
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s, %q: got %v, want %q", row.status, row.message, err, row.want)
		}
	}
	says(corev1.ConditionFalse, noNetwork)
	if err := c.NodeRegistered(t.Context(), "registered", "v1.36.4"); err == nil || !strings.Contains(err.Error(), "its kubelet reports v1.36.3, not v1.36.4") {
		t.Errorf("another version: %v", err)
	}
	if err := c.NodeRegistered(t.Context(), "nobody", "v1.36.3"); err == nil || !strings.Contains(err.Error(), "it has not registered") {
		t.Errorf("no Node: %v", err)
	}
}

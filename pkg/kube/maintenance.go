// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/drain"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// MaintenanceAnnotation on a Node says since when it is held for maintenance, for people: as RFC 3339 has it.
	MaintenanceAnnotation = "kubexm.cluster.x-k8s.io/maintenance-since"
	// cordonedAnnotation says that it was not cordoned before: it is uncordoned when the maintenance ends.
	cordonedAnnotation = "kubexm.cluster.x-k8s.io/cordoned-for-maintenance"
)

// NodeVersion returns nil when the Node is Ready (see NodeReady) and its kubelet is of this version.
func (c *Cluster) NodeVersion(ctx context.Context, name, version string) error {
	if err := c.NodeReady(ctx, name); err != nil {
		return err
	}
	node, err := c.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return c.fail(err, "Node %s", name)
	}
	if is := node.Status.NodeInfo.KubeletVersion; is != version {
		return c.fail(fmt.Errorf("its kubelet reports %s, not %s", is, version), "Node %s", name)
	}
	return nil
}

// DrainNode holds a Node for maintenance: it is cordoned, and its Pods are evicted as kubectl drain does (DaemonSets' and static
// Pods stay, emptyDir data goes, budgets are respected), but for those that nothing would make again elsewhere, which stay. Where no
// other Node would take Pods, all stay: they survive a kubelet that is restarted, and would have nowhere to go. It may be repeated.
func (c *Cluster) DrainNode(ctx context.Context, name string) error {
	node, err := c.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return c.fail(err, "Node %s", name)
	}
	if err := c.hold(ctx, node); err != nil {
		return err
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	elsewhere := slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name != name && takesPods(&n) })
	if !elsewhere {
		return nil
	}
	h := c.drainer(ctx)
	h.Force = true // of the Pods without a controller, which are left out here
	h.AdditionalFilters = []drain.PodFilter{func(pod corev1.Pod) drain.PodDeleteStatus {
		if metav1.GetControllerOf(&pod) == nil {
			return drain.MakePodDeleteStatusSkip()
		}
		return drain.MakePodDeleteStatusOkay()
	}}
	if err := drain.RunNodeDrain(h, name); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return c.fail(err, "draining Node %s", name)
	}
	return nil
}

func (c *Cluster) drainer(ctx context.Context) *drain.Helper {
	return &drain.Helper{
		Ctx: ctx, Client: c.typed, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		EvictErrorRetryDelay: 2 * time.Second,
		Out:                  io.Discard, ErrOut: io.Discard,
	}
}

// takesPods reports whether a Node takes Pods that tolerate nothing. The taint of a cordon goes a moment after the cordon.
func takesPods(n *corev1.Node) bool {
	return !n.Spec.Unschedulable && notReady(n) == nil && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key != corev1.TaintNodeUnschedulable &&
			(t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute)
	})
}

// hold cordons a Node and says so on it, once.
func (c *Cluster) hold(ctx context.Context, node *corev1.Node) error {
	annotations := map[string]any{}
	_, held := node.Annotations[MaintenanceAnnotation]
	switch {
	case held && node.Spec.Unschedulable:
		return nil
	case !held:
		annotations[MaintenanceAnnotation] = time.Now().UTC().Format(time.RFC3339)
	}
	if !node.Spec.Unschedulable {
		// Somebody may have uncordoned it while it was held, and wants it to take Pods when that ends.
		annotations[cordonedAnnotation] = ""
	}
	return c.patchNode(ctx, node.Name, annotations, map[string]any{"unschedulable": true})
}

// NodeInMaintenance reports whether the Node is in maintenance. One that is not there is not.
func (c *Cluster) NodeInMaintenance(ctx context.Context, name string) (bool, error) {
	node, err := c.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, c.fail(err, "Node %s", name)
	}
	_, held := node.Annotations[MaintenanceAnnotation]
	return held, nil
}

// EndMaintenance ends the maintenance of a Node. Its Pods of these DaemonSets in kube-system that are older than it are deleted
// first; while those that follow are not Ready the error is *step.NotYet.
func (c *Cluster) EndMaintenance(ctx context.Context, name string, daemonSets []string) error {
	node, err := c.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return c.fail(err, "Node %s", name)
	}
	if _, held := node.Annotations[MaintenanceAnnotation]; !held {
		return nil
	}
	for _, ds := range daemonSets {
		if err := c.renewPod(ctx, ds, name, heldSince(node)); err != nil {
			return err
		}
	}
	var spec map[string]any
	if _, ours := node.Annotations[cordonedAnnotation]; ours {
		spec = map[string]any{"unschedulable": nil}
	}
	return c.patchNode(ctx, name, map[string]any{MaintenanceAnnotation: nil, cordonedAnnotation: nil}, spec)
}

// heldSince is when the Node was held: by the API server's clock, as the ages of Pods are, or where nobody has kept track of who manages
// its fields (it was made without any, or they were cleared), by ours, as the annotation says.
func heldSince(node *corev1.Node) time.Time {
	for _, f := range node.ManagedFields {
		if f.FieldsV1 != nil && f.Time != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:`+MaintenanceAnnotation+`"`) {
			return f.Time.Time
		}
	}
	if since, err := time.Parse(time.RFC3339, node.Annotations[MaintenanceAnnotation]); err == nil {
		return since
	}
	return node.CreationTimestamp.Time // somebody has written over it: no Pod on it is older
}

// renewPod deletes the DaemonSet's Pod on the Node if it is older than since, and wants the one that follows Ready.
func (c *Cluster) renewPod(ctx context.Context, daemonSet, node string, since time.Time) error {
	ds, err := c.typed.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, daemonSet, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return c.fail(err, "DaemonSet %s", daemonSet)
	}
	pods, err := c.typed.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector), FieldSelector: "spec.nodeName=" + node,
	})
	if err != nil {
		return c.fail(err, "listing Pods of DaemonSet %s on Node %s", daemonSet, node)
	}
	why := "it has no Pod there yet"
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case !pod.DeletionTimestamp.IsZero():
			why = fmt.Sprintf("Pod %s ends", pod.Name)
		case !pod.CreationTimestamp.Time.After(since): // both are in whole seconds
			err := c.typed.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
				Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
			})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return c.fail(err, "deleting Pod %s", pod.Name)
			}
			why = fmt.Sprintf("Pod %s ends", pod.Name)
		case podReady(pod):
			return nil
		default:
			why = fmt.Sprintf("Pod %s is not Ready", pod.Name)
			if hinders := hindrance(pod); hinders != "" {
				why += ": " + hinders
			}
		}
	}
	return &step.NotYet{Reason: c.fail(errors.New(why), "DaemonSet %s on Node %s", daemonSet, node).Error()}
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// patchNode merges annotations and the spec into a Node; nil takes away.
func (c *Cluster) patchNode(ctx context.Context, name string, annotations, spec map[string]any) error {
	patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	if spec != nil {
		patch["spec"] = spec
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.typed.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return c.fail(err, "changing Node %s", name)
	}
	return nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// declaredAnnotation on a Node records which labels and taints were declared for it, so that those that are not any more are known
// from others'. Field ownership would not do: the kubelet owns those that the Node registered with, and taints are one field.
const declaredAnnotation = "kubexm.cluster.x-k8s.io/declared-metadata"

// declaredMetadata is the annotation's content, in order.
type declaredMetadata struct {
	// Labels are keys, Taints are "key:effect".
	Labels []string `json:"labels,omitempty"`
	Taints []string `json:"taints,omitempty"`
}

// NodeMetadataDiffers says how a Node's labels and taints differ from those that are declared for it.
func (c *Cluster) NodeMetadataDiffers(
	ctx context.Context, name string, labels map[string]string, taints []corev1.Taint,
) (step.Diff, error) {
	node, err := c.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, c.fail(err, "Node %s", name)
	}
	change, err := metadataChange(node, labels, taints)
	if err != nil {
		return nil, c.fail(err, "Node %s", name)
	}
	return change.diff, nil
}

// SetNodeMetadata makes a Node's labels and taints those that are declared for it, and removes those that were declared before. Others
// stay. If somebody else changes the Node meanwhile, it fails with a conflict and can be repeated.
func (c *Cluster) SetNodeMetadata(ctx context.Context, name string, labels map[string]string, taints []corev1.Taint) error {
	node, err := c.typed.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return c.fail(err, "Node %s", name)
	}
	change, err := metadataChange(node, labels, taints)
	if err != nil {
		return c.fail(err, "Node %s", name)
	}
	if len(change.diff) == 0 {
		return nil
	}
	// Taints are one list: without the resource version another's taint could be lost.
	patch := map[string]any{
		"metadata": map[string]any{
			"resourceVersion": node.ResourceVersion, "labels": change.labels, "annotations": map[string]any{declaredAnnotation: change.record},
		},
		"spec": map[string]any{"taints": change.taints},
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if _, err := c.typed.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType,
		raw, metav1.PatchOptions{FieldManager: manager}); err != nil {
		return c.fail(err, "labels and taints of Node %s", name)
	}
	return nil
}

// change is what must become of a Node's metadata.
type change struct {
	diff step.Diff
	// labels are merged into the Node's: nil removes one. taints replace the Node's. record is the annotation.
	labels map[string]any
	taints []corev1.Taint
	record string
}

func metadataChange(node *corev1.Node, labels map[string]string, taints []corev1.Taint) (change, error) {
	var before declaredMetadata
	if recorded := node.Annotations[declaredAnnotation]; recorded != "" {
		if err := json.Unmarshal([]byte(recorded), &before); err != nil {
			return change{}, fmt.Errorf("its annotation %s is not what was written: %w; remove it", declaredAnnotation, err)
		}
	}
	c := change{labels: map[string]any{}, taints: slices.Clone(node.Spec.Taints)}
	after := declaredMetadata{Labels: slices.Sorted(maps.Keys(labels))}
	differs := func(subject, from, to string) {
		c.diff = append(c.diff, step.Delta{Subject: subject, From: from, To: to})
	}

	for _, key := range after.Labels {
		if is, there := node.Labels[key]; !there || is != labels[key] {
			c.labels[key] = labels[key]
			differs("label "+key, shown(is, there), shown(labels[key], true))
		}
	}
	for _, key := range before.Labels {
		if is, there := node.Labels[key]; there && !slices.Contains(after.Labels, key) {
			c.labels[key] = nil
			differs("label "+key, shown(is, there), shown("", false))
		}
	}
	for _, t := range taints {
		after.Taints = append(after.Taints, taintID(t))
		i := slices.IndexFunc(c.taints, func(is corev1.Taint) bool { return taintID(is) == taintID(t) })
		switch {
		case i < 0:
			c.taints = append(c.taints, t)
			differs("taint "+taintID(t), shown("", false), shown(t.Value, true))
		case c.taints[i].Value != t.Value:
			differs("taint "+taintID(t), shown(c.taints[i].Value, true), shown(t.Value, true))
			c.taints[i].Value = t.Value
		}
	}
	slices.Sort(after.Taints)
	for _, id := range before.Taints {
		i := slices.IndexFunc(c.taints, func(is corev1.Taint) bool { return taintID(is) == id })
		if i >= 0 && !slices.Contains(after.Taints, id) {
			differs("taint "+id, shown(c.taints[i].Value, true), shown("", false))
			c.taints = slices.Delete(c.taints, i, i+1)
		}
	}
	raw, err := json.Marshal(after)
	if err != nil {
		return change{}, err
	}
	// Without the record nobody would know later that what is declared now is ours to remove.
	if c.record = string(raw); node.Annotations[declaredAnnotation] != c.record {
		differs("annotation "+declaredAnnotation, shown(node.Annotations[declaredAnnotation], node.Annotations[declaredAnnotation] != ""), c.record)
	}
	return c, nil
}

// taintID tells taints of a Node apart.
func taintID(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

func shown(value string, there bool) string {
	if !there {
		return "absent"
	}
	return fmt.Sprintf("%q", value)
}

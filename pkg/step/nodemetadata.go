// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// NodeMetadata are the labels and taints that are declared for a Node. Others' are left alone; those that were declared before and are
// not any more are removed. It must come after the Node has registered.
type NodeMetadata struct {
	onController
	Node   string            `json:"node"`
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
}

// Meta names the kind.
func (m NodeMetadata) Meta() Meta { return Meta{Name: "node-metadata"} }

// Probe compares the Node with what is declared.
func (m NodeMetadata) Probe(ctx context.Context, rt *Runtime) (Diff, error) {
	return rt.Cluster.NodeMetadataDiffers(ctx, m.Node, m.Labels, m.Taints)
}

// Run sets the labels and taints.
func (m NodeMetadata) Run(ctx context.Context, rt *Runtime) error {
	return rt.Cluster.SetNodeMetadata(ctx, m.Node, m.Labels, m.Taints)
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestNodeMetadata: what is declared for a Node reaches it, what is not declared any more is removed, and others' labels and taints stay.
func TestNodeMetadata(t *testing.T) {
	c, client := api(t)
	const name = "labelled"
	others := corev1.Taint{Key: "others", Value: "yes", Effect: corev1.TaintEffectPreferNoSchedule}
	readyNode(t, client, name, "v1.36.3", others)
	must[*corev1.Node](t)(client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"others":"stay","disk":"hdd"}}}`), metav1.PatchOptions{}))

	gpu := corev1.Taint{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}
	for _, tt := range []struct {
		about  string
		labels map[string]string
		taints []corev1.Taint
		// differs are the subjects that are found to differ before.
		differs []string
		want    map[string]string
		tainted []string
	}{
		{
			about: "declared for the first time, one of them there already", labels: map[string]string{"disk": "ssd", "zone": "a"}, taints: []corev1.Taint{gpu},
			differs: []string{"label disk", "label zone", "taint dedicated:NoSchedule", "annotation kubexm.cluster.x-k8s.io/declared-metadata"},
			want:    map[string]string{"others": "stay", "disk": "ssd", "zone": "a"}, tainted: []string{"others=yes:PreferNoSchedule", "dedicated=gpu:NoSchedule"},
		},
		{
			about: "as declared", labels: map[string]string{"disk": "ssd", "zone": "a"}, taints: []corev1.Taint{gpu},
			want: map[string]string{"others": "stay", "disk": "ssd", "zone": "a"}, tainted: []string{"others=yes:PreferNoSchedule", "dedicated=gpu:NoSchedule"},
		},
		{
			about: "another value, and one less", labels: map[string]string{"zone": "b"}, taints: []corev1.Taint{{Key: "dedicated", Value: "db", Effect: gpu.Effect}},
			differs: []string{"label zone", "label disk", "taint dedicated:NoSchedule", "annotation kubexm.cluster.x-k8s.io/declared-metadata"},
			want:    map[string]string{"others": "stay", "zone": "b"}, tainted: []string{"others=yes:PreferNoSchedule", "dedicated=db:NoSchedule"},
		},
		{
			about:   "nothing",
			differs: []string{"label zone", "taint dedicated:NoSchedule", "annotation kubexm.cluster.x-k8s.io/declared-metadata"},
			want:    map[string]string{"others": "stay"}, tainted: []string{"others=yes:PreferNoSchedule"},
		},
	} {
		t.Run(tt.about, func(t *testing.T) {
			diff, err := c.NodeMetadataDiffers(t.Context(), name, tt.labels, tt.taints)
			if err != nil {
				t.Fatal(err)
			}
			var subjects []string
			for _, d := range diff {
				subjects = append(subjects, d.Subject)
			}
			if d := cmp.Diff(tt.differs, subjects); d != "" {
				t.Errorf("what differs (-want +got):\n%s", d)
			}
			if err := c.SetNodeMetadata(t.Context(), name, tt.labels, tt.taints); err != nil {
				t.Fatal(err)
			}
			node := must[*corev1.Node](t)(client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{}))
			labels := maps.Clone(node.Labels)
			maps.DeleteFunc(labels, func(key, _ string) bool { return !slices.Contains([]string{"others", "disk", "zone"}, key) })
			if d := cmp.Diff(tt.want, labels); d != "" {
				t.Errorf("labels (-want +got):\n%s", d)
			}
			var tainted []string
			for _, taint := range node.Spec.Taints {
				if taint.Key != corev1.TaintNodeNotReady { // the server's own
					tainted = append(tainted, taint.ToString())
				}
			}
			if d := cmp.Diff(tt.tainted, tainted); d != "" {
				t.Errorf("taints (-want +got):\n%s", d)
			}
			if diff, err := c.NodeMetadataDiffers(t.Context(), name, tt.labels, tt.taints); err != nil || len(diff) > 0 {
				t.Errorf("afterwards: %v, %v", diff, err)
			}
		})
	}
	wantError(t, c.SetNodeMetadata(t.Context(), "none", nil, nil), "Node none")
	must[*corev1.Node](t)(client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"kubexm.cluster.x-k8s.io/declared-metadata":"?"}}}`), metav1.PatchOptions{}))
	wantError(t, c.SetNodeMetadata(t.Context(), name, nil, nil), "declared-metadata", "remove it")
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
)

const workload = `
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: NAMESPACE}
data: {Corefile: ".:53 { errors }", extra: x}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: coredns}}
  template:
    metadata: {labels: {app: coredns}}
    spec:
      containers:
      - name: coredns
        image: registry.k8s.io/coredns/coredns:v1.14.2
        ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]
        resources: {limits: {memory: 170Mi}, requests: {cpu: "0.1"}}
---
apiVersion: v1
kind: Service
metadata: {name: coredns, namespace: NAMESPACE}
spec:
  selector: {app: coredns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAMESPACE}
rules: [{apiGroups: [""], resources: [pods], verbs: [list, watch]}]
`

func TestApplyConverges(t *testing.T) {
	c, client := api(t)
	ns := namespace(t, client)
	manifest := []byte(strings.ReplaceAll(workload, "NAMESPACE", ns))
	all := []string{"ConfigMap " + ns + "/coredns", "Deployment " + ns + "/coredns", "Service " + ns + "/coredns", "ClusterRole " + ns}

	expect := func(when string, manifest []byte, want ...string) {
		t.Helper()
		if got := must[[]string](t)(c.Differs(t.Context(), manifest)); !slices.Equal(got, want) {
			t.Errorf("%s %q differ, want %q", when, got, want)
		}
	}
	apply := func(manifest []byte) {
		t.Helper()
		if err := c.Apply(t.Context(), manifest); err != nil {
			t.Fatal(err)
		}
	}
	expect("before", manifest, all...)
	expect("before, asked again: asking changes nothing,", manifest, all...)
	apply(manifest)
	expect("after", manifest)

	live := must[*corev1.ConfigMap](t)(client.CoreV1().ConfigMaps(ns).Get(t.Context(), "coredns", metav1.GetOptions{}))
	if m := live.ManagedFields[0]; m.Manager != "kubexm" || m.Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("the field manager is %s by %s", m.Manager, m.Operation)
	}

	// Somebody else takes a field, adds one, and a controller writes status.
	for _, patch := range []string{`{"data":{"Corefile":"theirs"}}`, `{"data":{"theirs":"x"}}`} {
		must[*corev1.ConfigMap](t)(client.CoreV1().ConfigMaps(ns).Patch(t.Context(), "coredns",
			types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "other"}))
	}
	must[*appsv1.Deployment](t)(client.AppsV1().Deployments(ns).Patch(t.Context(), "coredns",
		types.MergePatchType, []byte(`{"status":{"replicas":1}}`), metav1.PatchOptions{}, "status"))
	expect("after somebody's edit", manifest, all[0])
	apply(manifest)
	expect("after taking it back", manifest)
	live = must[*corev1.ConfigMap](t)(client.CoreV1().ConfigMaps(ns).Get(t.Context(), "coredns", metav1.GetOptions{}))
	if live.Data["theirs"] != "x" || live.Data["Corefile"] != ".:53 { errors }" {
		t.Errorf("data is %v", live.Data)
	}

	// What is taken out of the manifest goes.
	less := []byte(strings.ReplaceAll(string(manifest), ", extra: x", ""))
	expect("with a field less", less, all[0])
	apply(less)
	live = must[*corev1.ConfigMap](t)(client.CoreV1().ConfigMaps(ns).Get(t.Context(), "coredns", metav1.GetOptions{}))
	if _, ok := live.Data["extra"]; ok {
		t.Error("a field that is no longer in the manifest is still there")
	}

	// What cannot be changed in place differs, and its apply says why; the others are applied all the same.
	moved := []byte(strings.NewReplacer("matchLabels: {app: coredns}", "matchLabels: {app: other}",
		"labels: {app: coredns}", "labels: {app: other}", "name: dns,", "name: dns-udp,").Replace(string(less)))
	expect("with another selector", moved, all[1], all[2])
	wantError(t, c.Apply(t.Context(), moved), "applying Deployment "+ns+"/coredns", "field is immutable", c.Server())
	expect("after half of it", moved, all[1])
}

// TestApplyKeepsNewer leaves the image of a newer version to those who have it, and nothing else.
func TestApplyKeepsNewer(t *testing.T) {
	c, client := api(t)
	ns := namespace(t, client)
	manifest := func(version, memory string) []byte {
		text := strings.NewReplacer("NAMESPACE", ns, "v1.14.2", version, "170Mi", memory,
			"kind: Deployment\nmetadata: {name: coredns,", "kind: Deployment\nmetadata: {name: coredns, annotations: {"+kube.KeepsNewerAnnotation+`: ""},`).Replace(workload)
		return []byte(text)
	}
	apply := func(when string, manifest []byte, image string, differs ...string) {
		t.Helper()
		if got := must[[]string](t)(c.Differs(t.Context(), manifest)); !slices.Equal(got, differs) {
			t.Errorf("%s: %q differ, want %q", when, got, differs)
		}
		if err := c.Apply(t.Context(), manifest); err != nil {
			t.Fatal(err)
		}
		is := must[*appsv1.Deployment](t)(client.AppsV1().Deployments(ns).Get(t.Context(), "coredns", metav1.GetOptions{}))
		if got := is.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(got, ":"+image) {
			t.Errorf("%s: the image is %s, want %s", when, got, image)
		}
	}
	if err := c.Apply(t.Context(), manifest("v1.14.2", "170Mi")); err != nil {
		t.Fatal(err)
	}
	deployment := "Deployment " + ns + "/coredns"
	apply("a newer one", manifest("v1.15.0", "170Mi"), "v1.15.0", deployment)
	apply("an older one", manifest("v1.14.2", "170Mi"), "v1.15.0")
	apply("another setting of an older one", manifest("v1.14.2", "200Mi"), "v1.15.0", deployment)
	apply("a newer one still", manifest("v1.16.0", "200Mi"), "v1.16.0", deployment)
}

func TestApplyInOrder(t *testing.T) {
	c, client := api(t)
	// The object comes before its kind and its namespace, and the server does not know the kind yet.
	const manifest = `
apiVersion: test.kubexm.mensylisir.io/v1
kind: Widget
metadata: {name: w, namespace: widgets}
spec: {size: 1}
---
apiVersion: v1
kind: Namespace
metadata: {name: widgets}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.kubexm.mensylisir.io}
spec:
  group: test.kubexm.mensylisir.io
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, colour: {type: string, default: red}}}}}}
`
	if got := must[[]string](t)(c.Differs(t.Context(), []byte(manifest))); len(got) != 3 {
		t.Errorf("%q differ", got)
	}
	if err := c.Apply(t.Context(), []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	if got := must[[]string](t)(c.Differs(t.Context(), []byte(manifest))); len(got) != 0 {
		t.Errorf("after the apply %q differ", got)
	}
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "widgets", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	wantError(t, c.Apply(t.Context(), []byte("apiVersion: nowhere.example.com/v1\nkind: Thing\nmetadata: {name: x}\n")), "applying Thing x", "no matches for kind")
}

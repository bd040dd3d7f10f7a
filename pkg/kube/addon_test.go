// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestAddon: objects of an addon that somebody changes or removes are found and repaired, and all of it goes when it is no longer
// wanted. What others have installed stays.
func TestAddon(t *testing.T) {
	b := newBench(t, "addon")
	addon := b.release(configMapChart, "word: ours")
	addon.Addon = true
	b.install(addon)
	theirs := testRelease(t, configMapChart, nil)
	theirs.Namespace = "not-an-addon"
	b.install(theirs)

	maps := b.client.CoreV1().ConfigMaps(b.name)
	m := must[*corev1.ConfigMap](t)(maps.Get(t.Context(), "r", metav1.GetOptions{}))
	m.Data["word"] = "theirs"
	if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.differs(addon, "objects in the cluster differ: ConfigMap addon/r")
	b.install(addon)
	b.word("ours")
	if err := maps.Delete(t.Context(), "r", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.differs(addon, "ConfigMap addon/r")
	b.install(addon)
	b.word("ours")

	beside := func(want ...string) {
		t.Helper()
		found := must[[]string](t)(b.cluster.AddonsBeside(t.Context(), []string{"default/other"}))
		found = slices.DeleteFunc(found, func(name string) bool { return name != "addon/r" && name != "not-an-addon/r" })
		if !slices.Equal(found, want) {
			t.Errorf("beside what is wanted there is %v, want %v", found, want)
		}
	}
	beside("addon/r")
	for range 2 { // the second time there is nothing
		if err := b.cluster.UninstallAddons(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	beside()
	if _, err := maps.Get(t.Context(), "r", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("its object is there: %v", err)
	}
	if left := must[*corev1.SecretList](t)(b.client.CoreV1().Secrets(b.name).List(t.Context(), metav1.ListOptions{})); len(left.Items) > 0 {
		t.Errorf("%d Secrets of it are there", len(left.Items))
	}
	if _, err := b.client.CoreV1().ConfigMaps("not-an-addon").Get(t.Context(), "r", metav1.GetOptions{}); err != nil {
		t.Errorf("another's release is gone: %v", err)
	}
}

// TestAddonOfManifest: what looks like a template is text; an object that leaves the manifest goes; definitions of kinds stay.
func TestAddonOfManifest(t *testing.T) {
	b := newBench(t, "manifest")
	const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: levers.test.kubexm.mensylisir.io}
spec:
  group: test.kubexm.mensylisir.io
  names: {kind: Lever, listKind: LeverList, plural: levers, singular: lever}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	const lever = "---\napiVersion: test.kubexm.mensylisir.io/v1\nkind: Lever\nmetadata: {name: l}\n"
	word := func(w string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: r, namespace: manifest}\ndata: {word: '" + w + "'}\n"
	}
	release := func(manifest string) step.HelmRelease {
		return step.HelmRelease{Name: "r", Namespace: b.name, Manifest: []byte(manifest), Addon: true}
	}
	b.install(release(definition + word("{{ .Values.word }}") + lever))
	b.word("{{ .Values.word }}")
	b.differs(release(definition+word("other")+lever), "other content")
	b.install(release(definition + word("other")))
	b.word("other")
	levers := "/apis/test.kubexm.mensylisir.io/v1/namespaces/manifest/levers/l"
	if _, err := b.client.RESTClient().Get().AbsPath(levers).DoRaw(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("what left the manifest is there: %v", err)
	}
	if err := b.cluster.UninstallAddons(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.RESTClient().Get().AbsPath("/apis/test.kubexm.mensylisir.io/v1/levers").DoRaw(t.Context()); err != nil {
		t.Errorf("the definition is gone: %v", err)
	}
	wantError(t, b.cluster.InstallRelease(t.Context(), release("kind: ConfigMap\n")), "Helm release manifest/r", "apiVersion and kind are needed")
}

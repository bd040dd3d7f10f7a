// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// definitionOf is that of a kind whose spec has one field, a string.
func definitionOf(kind, field string) string {
	name := strings.ToLower(kind)
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + name + `s.test.kubexm.mensylisir.io, creationTimestamp: null}
spec:
  group: test.kubexm.mensylisir.io
  names: {kind: ` + kind + `, listKind: ` + kind + `List, plural: ` + name + `s, singular: ` + name + `}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {` + field + `: {type: string}}}}}}}
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
`
}

// TestAddonOfManifest: what looks like a template is text; an object that leaves the manifest goes, and one of a kind that is not the
// server's own is repaired; definitions of kinds stay.
func TestAddonOfManifest(t *testing.T) {
	b := newBench(t, "manifest")
	definition := definitionOf("Lever", "pos")
	const lever = "---\napiVersion: test.kubexm.mensylisir.io/v1\nkind: Lever\nmetadata: {name: l}\nspec: {pos: up}\n"
	word := func(w string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: r, namespace: manifest}\ndata: {word: '" + w + "'}\n"
	}
	release := func(manifest string) step.HelmRelease {
		return step.HelmRelease{Name: "r", Namespace: b.name, Manifest: []byte(manifest), Addon: true}
	}
	first := release(definition + word("{{ .Values.word }}") + lever)
	b.install(first)
	b.word("{{ .Values.word }}")
	levers := "/apis/test.kubexm.mensylisir.io/v1/namespaces/manifest/levers/l"
	down := []byte(`{"spec":{"pos":"down"}}`)
	must[[]byte](t)(b.client.RESTClient().Patch(types.MergePatchType).AbsPath(levers).Body(down).DoRaw(t.Context()))
	b.differs(first, "objects in the cluster differ: Lever manifest/l")
	b.install(first)
	if raw := must[[]byte](t)(b.client.RESTClient().Get().AbsPath(levers).DoRaw(t.Context())); !strings.Contains(string(raw), `"pos":"up"`) {
		t.Errorf("it was not repaired: %s", raw)
	}
	b.differs(release(definition+word("other")+lever), "other content")
	b.install(release(definition + word("other")))
	b.word("other")
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

// TestAddonInstalledAnew: definitions that an earlier installation has left become those of the addon before its objects are made.
func TestAddonInstalledAnew(t *testing.T) {
	b := newBench(t, "anew")
	release := func(field string) step.HelmRelease {
		object := "---\napiVersion: test.kubexm.mensylisir.io/v1\nkind: Pulley\nmetadata: {name: p}\nspec: {" + field + ": x}\n"
		return step.HelmRelease{Name: "r", Namespace: b.name, Manifest: []byte(definitionOf("Pulley", field) + object), Addon: true}
	}
	b.install(release("rope"))
	if err := b.cluster.UninstallAddons(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	b.install(release("chain"))
	raw := must[[]byte](t)(b.client.RESTClient().Get().AbsPath("/apis/test.kubexm.mensylisir.io/v1/namespaces/anew/pulleys/p").DoRaw(t.Context()))
	if !strings.Contains(string(raw), `"chain":"x"`) {
		t.Errorf("the new field is not there: %s", raw)
	}
}

// TestAddonDefinitionsAreCompared: a definition that somebody deletes is found and made anew, with what it defines.
func TestAddonDefinitionsAreCompared(t *testing.T) {
	b := newBench(t, "compared")
	const object = "---\napiVersion: test.kubexm.mensylisir.io/v1\nkind: Wedge\nmetadata: {name: w}\nspec: {angle: x}\n"
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/wedges.test.kubexm.mensylisir.io"
	for _, objects := range []string{"", object} {
		r := step.HelmRelease{Name: "r", Namespace: b.name, Manifest: []byte(definitionOf("Wedge", "angle") + objects), Addon: true}
		b.install(r)
		must[[]byte](t)(b.client.RESTClient().Delete().AbsPath(definitions).DoRaw(t.Context()))
		for { // what it defines goes first
			if _, err := b.client.RESTClient().Get().AbsPath(definitions).DoRaw(t.Context()); apierrors.IsNotFound(err) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		b.differs(r, "objects in the cluster differ: CustomResourceDefinition wedges.test.kubexm.mensylisir.io")
		b.install(r)
	}
}

// TestAddonWithoutAPart: what the values leave out of a chart brings no definitions, be it installed or upgraded.
func TestAddonWithoutAPart(t *testing.T) {
	b := newBench(t, "part")
	chart := configMapChart.with(files{
		"Chart.yaml": "apiVersion: v2\nname: words\nversion: 1.0.0\n" +
			"dependencies: [{name: sub, version: 1.0.0, alias: part, condition: part.enabled}]\n",
		"charts/sub/Chart.yaml":      "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		"charts/sub/crds/screw.yaml": definitionOf("Screw", "pitch"),
	})
	is := func(there bool) {
		t.Helper()
		_, err := b.client.RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/screws.test.kubexm.mensylisir.io").DoRaw(t.Context())
		if apierrors.IsNotFound(err) == there || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("want the definition there: %t; got %v", there, err)
		}
	}
	for _, step := range []struct {
		values string
		there  bool
	}{{"part: {enabled: false}", false}, {"part: {enabled: false}\nword: other", false}, {"part: {enabled: true}", true}} {
		addon := b.release(chart, step.values)
		addon.Addon = true
		b.install(addon)
		is(step.there)
	}
}

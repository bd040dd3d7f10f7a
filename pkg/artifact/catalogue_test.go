// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
)

// TestCatalogueResolved keeps what every entry comes to once its templates are filled in.
func TestCatalogueResolved(t *testing.T) {
	c := defaultCatalogue(t)
	var recipes []Recipe
	for _, name := range c.Components() {
		for _, version := range c.Versions(name) {
			r, err := c.Recipe(name, version, "arm64")
			if err != nil {
				t.Fatal(err)
			}
			recipes = append(recipes, r)
		}
	}
	got, err := json.MarshalIndent(recipes, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/recipes.golden.json", string(got)+"\n")
}

func TestCatalogueImages(t *testing.T) {
	images, err := defaultCatalogue(t).Images("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(images)) {
		lines = append(lines, name+" "+images[name])
	}
	golden.File(t, "testdata/images.golden", strings.Join(lines, "\n")+"\n")

	refs, err := images.Refs("pause", "kube-proxy")
	if want := []string{"registry.k8s.io/pause:3.10.2", "registry.k8s.io/kube-proxy:v1.36.3"}; err != nil || !slices.Equal(refs, want) {
		t.Errorf("Refs: %v, %v", refs, err)
	}
	var unknown *UnknownNameError
	if _, err := images.Refs("pause", "apache"); !errors.As(err, &unknown) || unknown.Name != "apache" {
		t.Errorf("Refs of an unknown image: %v", err)
	}
}

func TestCatalogueVersions(t *testing.T) {
	c := defaultCatalogue(t)
	if got, want := c.Versions("etcd"), []string{"v3.6.14", "v3.6.8"}; !slices.Equal(got, want) {
		t.Errorf("Versions(etcd) = %v, want %v", got, want)
	}
	if !c.Has(Kubernetes, "v1.36.3") || c.Has(Kubernetes, "v1.36.99") || c.Has("nothing", "v1") {
		t.Error("Has is wrong")
	}
	r, err := c.Release("v1.36.3")
	if err != nil || r.Version(Kubernetes) != "v1.36.3" || r.Version("runc") != "v1.5.2" || r.Version("nothing") != "" {
		t.Errorf("Release: %+v, %v", r, err)
	}
	_, err = c.Release("v1.99.0")
	var unknown *UnknownVersionError
	if !errors.As(err, &unknown) {
		t.Fatalf("Release of an unknown version: %v", err)
	}
	if want := "there are no artifacts for kubernetes v1.99.0; known versions: v1.36.3, v1.35.4"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if _, err := c.Recipe("etcd", "v9.9.9", "amd64"); !errors.As(err, &unknown) || unknown.Component != "etcd" {
		t.Errorf("Recipe of an unknown version: %v", err)
	}
	if _, err := c.Recipe("etcd", "v3.6.14", "riscv64"); err == nil || !strings.Contains(err.Error(), "amd64, arm64") {
		t.Errorf("Recipe for an unknown architecture: %v", err)
	}
}

// TestCatalogueUpgrades wants the upgrade between the two releases to be one of etcd, containerd and CoreDNS as well, as an upgrade that
// changes nothing but Kubernetes shows little.
func TestCatalogueUpgrades(t *testing.T) {
	c := defaultCatalogue(t)
	var releases [2]Release
	for i, kubernetes := range []string{"v1.35.4", "v1.36.3"} {
		var err error
		if releases[i], err = c.Release(kubernetes); err != nil {
			t.Fatal(err)
		}
	}
	for _, component := range []string{"etcd", "containerd", "coredns"} {
		older, newer := releases[0].Version(component), releases[1].Version(component)
		if semver.Compare(older, newer) >= 0 {
			t.Errorf("%s: %s, and %s in the next release", component, older, newer)
		}
	}
	if older, newer := slices.Sorted(maps.Keys(releases[0].Components)),
		slices.Sorted(maps.Keys(releases[1].Components)); !slices.Equal(older, newer) {
		t.Errorf("one release has the components %v, the next one %v", older, newer)
	}
}

func TestCatalogueMirrors(t *testing.T) {
	c := defaultCatalogue(t)
	if m, err := c.Mirrors(""); m != nil || err != nil {
		t.Errorf("no zone: %v, %v", m, err)
	}
	if m, err := c.Mirrors("cn"); len(m) == 0 || err != nil {
		t.Errorf("cn: %v, %v", m, err)
	}
	if _, err := c.Mirrors("mars"); err == nil || !strings.Contains(err.Error(), `no zone "mars"; known: cn`) {
		t.Errorf("mars: %v", err)
	}
}

func TestParseCatalogueRefuses(t *testing.T) {
	const component = `
components:
- name: tool
  kind: binary
  versions: [{version: v1.0.0}]
  build: {go: {modules: [{path: example.com/tool, version: "{{.Version}}"}], programs: {tool: example.com/tool}}}
`
	for name, tc := range map[string]struct{ yaml, want string }{
		"unknown field": {
			component + "colour: red\n", `unknown field "colour"`,
		},
		"unknown field of a component": {
			strings.Replace(component, "kind: binary", "kind: binary\n  colour: red", 1), `unknown field "colour"`,
		},
		"unknown field of a build": {
			strings.Replace(component, "modules:", "colour: red, modules:", 1), `component tool: build: json: unknown field "colour"`,
		},
		"kind": {
			strings.Replace(component, "kind: binary", "kind: toy", 1), `component tool: kind "toy" is none of`,
		},
		"twice": {
			component + strings.TrimPrefix(component, "\ncomponents:\n"), "component tool is there twice",
		},
		"neither build nor download": {
			"components: [{name: tool, kind: binary, versions: [{version: v1}]}]", "neither build nor download",
		},
		"two ways to build": {
			strings.Replace(component, "build: {", "build: {chart: {module: {path: a}, directory: b}, ", 1), "exactly one of go, c, chart, debian, tree, packages must be set, not 2",
		},
		"word that no template has": {
			strings.Replace(component, "{{.Version}}", "{{.Colour}}", 1), "can't evaluate field Colour",
		},
		"variable that the version has not": {
			strings.Replace(component, "{{.Version}}", "{{.Vars.colour}}", 1), `map has no entry for key "colour"`,
		},
		"download without a sum": {
			"components: [{name: tool, kind: binary, versions: [{version: v1}], download: [{name: tool, url: 'https://example.com/tool'}]}]", "sha256, sha256URL or both must be set",
		},
		"download to a path": {
			"components: [{name: tool, kind: binary, versions: [{version: v1}], download: [{name: ../tool, url: 'https://example.com/tool', sha256URL: 'https://example.com/sum'}]}]", `"../tool" is not the name of a file`,
		},
		"release without artifacts": {
			component + "releases: [{kubernetes: v1.0.0, components: {tool: v1.0.0}}]", "there are no artifacts for kubernetes v1.0.0",
		},
		"image of nothing": {
			strings.Replace(component, "name: tool", "name: kubernetes", 1) + "releases: [{kubernetes: v1.0.0}]\nimages: [{name: i, component: nothing, ref: r, files: {}}]", "component nothing is not in the release",
		},
		"image on nothing": {
			strings.Replace(component, "name: tool", "name: kubernetes", 1) + "releases: [{kubernetes: v1.0.0}]\nimages: [{name: i, component: kubernetes, base: kubernetes, ref: r, files: {}}]", "base kubernetes is not in the release",
		},
		"image of no files": {
			strings.Replace(component, "name: tool", "name: kubernetes", 1) + "releases: [{kubernetes: v1.0.0}]\nimages: [{name: i, component: kubernetes, ref: r}]", "it has neither files nor a base",
		},
		"image with a relative path": {
			strings.Replace(component, "name: tool", "name: kubernetes", 1) + "releases: [{kubernetes: v1.0.0}]\nimages: [{name: i, component: kubernetes, ref: r, files: {tool: bin/tool}}]", `"bin/tool" is not an absolute path`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCatalogue([]byte(tc.yaml))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
	if _, err := ParseCatalogue([]byte(component)); err != nil {
		t.Errorf("the catalogue that these are made of: %v", err)
	}
}

func defaultCatalogue(t *testing.T) *Catalogue {
	t.Helper()
	c, err := DefaultCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

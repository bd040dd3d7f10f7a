// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// TestSettings goes through what Cluster API's create-local-repository.py reads, in the root's file and in those that it names: the
// script cannot be had as a module.
func TestSettings(t *testing.T) {
	providers, err := readProviders(root)
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := os.ReadFile(filepath.Join(root, "metadata.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	labels := make([]string, 0, len(providers))
	for _, p := range providers {
		labels = append(labels, p.Label)
		if _, err := os.Stat(filepath.Join(p.dir, p.Config.ConfigFolder, "kustomization.yaml")); err != nil {
			t.Errorf("%s: %v", p.Label, err)
		}
		next, err := utilversion.ParseSemantic(p.Config.NextVersion)
		if err != nil {
			t.Errorf("%s: nextVersion: %v", p.Label, err)
			continue
		}
		// The script copies the file that is beside the settings.
		copied, err := readMetadata(p.dir, "v"+next.String())
		if err != nil {
			t.Errorf("%s: %v", p.Label, err)
		}
		if diff := cmp.Diff(string(metadata), string(copied)); diff != "" {
			t.Errorf("%s has another metadata.yaml than the root:\n-want +got:\n%s", p.dir, diff)
		}
	}
	if want := []string{"bootstrap-kubexm", "control-plane-kubexm", "infrastructure-kubexm"}; !slices.Equal(labels, want) {
		t.Errorf("the providers are %v, not %v", labels, want)
	}
}

// TestTiltfile takes the steps that tilt takes, without tilt, a cluster or an image registry.
func TestTiltfile(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "Tiltfile"))
	if err != nil {
		t.Fatal(err)
	}
	one := func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(data), -1)
		if len(found) != 1 {
			t.Fatalf("the Tiltfile has %d of %s", len(found), pattern)
		}
		return found[0][1]
	}
	list := func(pattern string) []string {
		t.Helper()
		return strings.Split(strings.ReplaceAll(one(pattern), "'", ""), ", ")
	}

	build := exec.CommandContext(t.Context(), "sh", "-c", one(`(?m)^local_resource\('manager', '([^']+)'`))
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	for _, path := range append(list(`deps=\[([^]]+)\]`), list(`only=\[([^]]+)\]`)...) {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
	}

	image := one(`(?m)^docker_build\('([^']+)'`)
	if want := `kustomize build config/' + provider + ' | clusterctl generate yaml`; one(`k8s_yaml\(local\('(.+)'\)\)`) != want {
		t.Errorf("components are not made by %q: take the same steps here", want)
	}
	for _, provider := range list(`for provider in \[([^]]+)\]`) {
		all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", provider))
		if err != nil {
			t.Fatal(err)
		}
		template, err := all.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		// No variable is set, as on a new machine.
		components, err := yamlprocessor.NewSimpleProcessor().Process(template, func(name string) (string, error) {
			return os.Getenv("NO_" + name), nil
		})
		if err != nil {
			t.Fatalf("clusterctl generate yaml, config/%s: %v", provider, err)
		}
		objects, err := utilyaml.ToUnstructured(components)
		if err != nil {
			t.Fatalf("config/%s: %v", provider, err)
		}
		deployments := 0
		for _, o := range objects {
			if o.GetKind() != "Deployment" {
				continue
			}
			deployments++
			d := &appsv1.Deployment{}
			encoded, err := yaml.Marshal(o.Object)
			if err == nil {
				err = yaml.UnmarshalStrict(encoded, d)
			}
			if err != nil {
				t.Fatalf("config/%s: %v", provider, err)
			}
			// Tilt replaces the image by the one that it has built, whatever its tag.
			if got, _, _ := strings.Cut(d.Spec.Template.Spec.Containers[0].Image, ":"); got != image {
				t.Errorf("config/%s: the manager's image is %s, and %s is built", provider, got, image)
			}
		}
		if deployments != 1 {
			t.Errorf("config/%s: %d Deployments", provider, deployments)
		}
	}
}

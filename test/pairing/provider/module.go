// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// ModuleDir is where a Go module of go.mod lies on this machine. One that nothing was built from yet is downloaded.
func ModuleDir(ctx context.Context, module string) (string, error) {
	said, err := Command(ctx, "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var of struct{ Dir string }
	if err := json.Unmarshal([]byte(said), &of); err != nil {
		return "", fmt.Errorf("where the module %s is: %w", module, err)
	}
	return of.Dir, nil
}

// ModuleDefinitions are the CustomResourceDefinitions in a directory of a module, each in the one version that is stored: nothing converts
// others here.
func ModuleDefinitions(ctx context.Context, module, directory string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := ModuleDir(ctx, module)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, directory, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the module %s has no definitions in %s", module, directory)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, definition); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, version := range definition.Spec.Versions {
			if version.Storage {
				definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version}
				break
			}
		}
		// What the provider's kustomization adds, by which Cluster API knows which version follows its contract.
		definition.Labels = map[string]string{"cluster.x-k8s.io/v1beta2": definition.Spec.Versions[0].Name}
		all = append(all, definition)
	}
	return all, nil
}

// Command runs a program of this machine, and returns what it writes.
func Command(ctx context.Context, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said.String())
	}
	return string(out), nil
}

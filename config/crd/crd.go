// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd has the custom resource definitions of all three providers, a directory each, generated from their types.
package crd

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// The names of generated files are group_plural.yaml.
//
//go:embed */*_*.yaml
var generated embed.FS

// CRDs are the definitions, in the order of their files' names, each as a new object.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(generated, "*/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the embedded definitions: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))
	for _, name := range files {
		data, err := fs.ReadFile(generated, name)
		if err != nil {
			return nil, fmt.Errorf("read the embedded definition %s: %w", name, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("decode the embedded definition %s: %w", name, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

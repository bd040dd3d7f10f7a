// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// parse returns the objects of a manifest: YAML or JSON documents, separated by "---". Lists are taken apart, empty
// documents passed over. Keys that stand twice are refused.
func parse(manifest []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for n := 1; ; n++ {
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("manifest, document %d: %w", n, err)
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(raw, &content); err != nil {
			return nil, fmt.Errorf("manifest, document %d: %w", n, err)
		}
		if len(content) == 0 {
			continue
		}
		objects, err := flatten(&unstructured.Unstructured{Object: content})
		if err != nil {
			return nil, fmt.Errorf("manifest, document %d: %w", n, err)
		}
		all = append(all, objects...)
	}
}

func flatten(o *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if o.GetAPIVersion() == "" || o.GetKind() == "" {
		return nil, errors.New("apiVersion and kind are needed")
	}
	if !o.IsList() {
		if o.GetName() == "" {
			return nil, fmt.Errorf("metadata.name of the %s is needed: without it nothing can be applied twice", o.GetKind())
		}
		return []*unstructured.Unstructured{o}, nil
	}
	var all []*unstructured.Unstructured
	err := o.EachListItem(func(item runtime.Object) error {
		objects, err := flatten(item.(*unstructured.Unstructured))
		all = append(all, objects...)
		return err
	})
	return all, err
}

// title names an object for people: Kind namespace/name.
func title(o *unstructured.Unstructured) string {
	if ns := o.GetNamespace(); ns != "" {
		return o.GetKind() + " " + ns + "/" + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

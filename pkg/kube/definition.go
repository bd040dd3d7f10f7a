// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// definitions are those of kinds that the chart brings beside its templates. Parts of it that its values leave out bring none.
func (d *desired) definitions() ([]*unstructured.Unstructured, error) {
	whole, err := d.load() // of its own: Helm takes those parts off once more
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependenciesWithMerge(whole, d.values); err != nil {
		return nil, fmt.Errorf("the parts of its chart: %w", err)
	}
	var all []*unstructured.Unstructured
	for _, definition := range whole.CRDObjects() {
		objects, err := parse(definition.File.Data)
		if err != nil {
			return nil, fmt.Errorf("%s of its chart: %w", definition.Filename, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// define applies the definitions, and returns when the server serves what they define. Helm leaves alone those that exist, be they of
// another version of the chart, and would then apply objects that may not fit them.
func (d *desired) define(ctx context.Context, c *Cluster) error {
	objects, err := d.definitions()
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.apply(ctx, o, d.namespace, false); err != nil {
			return fmt.Errorf("applying %s: %w", title(o), err)
		}
	}
	for _, o := range objects {
		if rank(o) != 1 {
			continue
		}
		err := wait.PollUntilContextTimeout(ctx, servedEvery, established, true, func(ctx context.Context) (bool, error) {
			return c.serves(ctx, o)
		})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case wait.Interrupted(err):
			err = fmt.Errorf("the kind is defined, but not served after %s: check the definition's conditions", established)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", title(o), err)
		}
	}
	return nil
}

// servedEvery is how often the server is asked whether it serves a kind.
const servedEvery = 200 * time.Millisecond

// serves reports whether the server serves all versions of the kind that a definition wants served.
func (c *Cluster) serves(ctx context.Context, definition *unstructured.Unstructured) (bool, error) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions") // the server has accepted it
	for _, v := range versions {
		v, _ := v.(map[string]any)
		name, _ := v["name"].(string)
		if served, _ := v["served"].(bool); !served {
			continue
		}
		mapping, err := bounded(ctx, func() (*meta.RESTMapping, error) {
			return c.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, name)
		})
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		// A mapping may be that of an earlier definition. What else the server says comes from one that serves.
		if _, err := c.dynamic.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsNotFound(err) {
			return false, nil
		}
	}
	return true, nil
}

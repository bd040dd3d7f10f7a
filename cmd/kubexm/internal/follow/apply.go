// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldManager owns the fields that the command line sets; what a user adds to the objects with kubectl stays.
const fieldManager = "kubexm-cli"

// Apply applies objects, each after the one before, and returns how many of them were not so already.
func Apply(ctx context.Context, c client.Client, objects []client.Object) (changed int, err error) {
	for _, object := range objects {
		was, err := version(ctx, c, object)
		if err != nil {
			return changed, fmt.Errorf("%s: %w", nameOf(object), err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return changed, fmt.Errorf("%s: %w", nameOf(object), err)
		}
		u := &unstructured.Unstructured{Object: content}
		delete(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager), client.ForceOwnership)
		if err != nil {
			return changed, fmt.Errorf("%s: %w", nameOf(object), err)
		}
		if u.GetResourceVersion() != was {
			changed++
		}
	}
	return changed, nil
}

// version is an object's resource version, "" if it does not exist.
func version(ctx context.Context, c client.Client, object client.Object) (string, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), u); apierrors.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return u.GetResourceVersion(), nil
}

func nameOf(object client.Object) string {
	return object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
}

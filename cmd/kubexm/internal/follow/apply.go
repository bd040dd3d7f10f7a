// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldManager owns the fields that the command line sets; what a user adds to the objects with kubectl stays.
const fieldManager = "kubexm-cli"

// Try asks the management plane whether it would take the objects, all of them, and changes nothing.
func Try(ctx context.Context, c client.Client, objects []client.Object) error {
	var errs []error
	for _, object := range objects {
		if _, err := apply(ctx, c, object, client.DryRunAll); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Apply applies objects, each after the one before, and returns how many of them were not so already.
func Apply(ctx context.Context, c client.Client, objects []client.Object) (changed int, err error) {
	for _, object := range objects {
		was, err := version(ctx, c, object)
		if err != nil {
			return changed, fmt.Errorf("%s: %w", nameOf(object), err)
		}
		is, err := apply(ctx, c, object)
		if err != nil {
			return changed, err
		}
		if is != was {
			changed++
		}
	}
	return changed, nil
}

// apply applies an object and returns its resource version.
func apply(ctx context.Context, c client.Client, object client.Object, more ...client.ApplyOption) (string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", fmt.Errorf("%s: %w", nameOf(object), err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	u := &unstructured.Unstructured{Object: content}
	options := append([]client.ApplyOption{client.FieldOwner(fieldManager), client.ForceOwnership}, more...)
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...); err != nil {
		return "", fmt.Errorf("%s: %w", nameOf(object), err)
	}
	return u.GetResourceVersion(), nil
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

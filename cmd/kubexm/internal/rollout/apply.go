// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// fieldManager owns the fields that the command line sets; what a user adds to the objects with kubectl stays.
const fieldManager = "kubexm-cli"

// Try asks the management plane whether it would take the objects, all of them, and changes nothing.
func Try(ctx context.Context, c client.Client, objects []client.Object) error {
	var errs []error
	for _, object := range objects {
		paused, err := redirected(ctx, c, object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if paused != nil {
			object = paused
		}
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
		paused, err := redirected(ctx, c, object)
		if err != nil {
			return changed, err
		}
		if paused != nil {
			if _, err := apply(ctx, c, paused); err != nil {
				return changed, err
			}
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

// redirected is the KubexmHost with the annotation that lets it be reached otherwise while it is in use, where the config has it so; nil
// else. Anyone who has the config has the cluster's keys, so that nothing is kept from them by asking for the annotation.
func redirected(ctx context.Context, c client.Client, object client.Object) (client.Object, error) {
	wanted, ok := object.(*infrav1.KubexmHost)
	if !ok {
		return nil, nil
	}
	found := &infrav1.KubexmHost{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(wanted), found); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(object), err)
	}
	if found.Spec.ClaimRef == (infrav1.MachineReference{}) ||
		found.Spec.Address == wanted.Spec.Address && equality.Semantic.DeepEqual(found.Spec.Access, wanted.Spec.Access) {
		return nil, nil
	}
	paused := wanted.DeepCopy()
	metav1.SetMetaDataAnnotation(&paused.ObjectMeta, clusterv1.PausedAnnotation, "")
	return paused, nil
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

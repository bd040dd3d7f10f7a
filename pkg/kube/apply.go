// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// established is how long Apply waits for the server to serve a kind whose definition it has just applied.
const established = 30 * time.Second

// Differs returns the manifest's objects, as "Kind namespace/name", that are absent or that a server-side apply would
// change. The server is asked by dry run, so defaults, conversions and admission count; what it keeps for itself
// (managed fields, resource version, generation) and status do not.
func (c *Cluster) Differs(ctx context.Context, manifest []byte) ([]string, error) {
	objects, err := parse(manifest)
	if err != nil {
		return nil, err
	}
	return c.differing(ctx, objects, metav1.NamespaceDefault)
}

// differing is Differs of objects, which are in this namespace where they name none.
func (c *Cluster) differing(ctx context.Context, objects []*unstructured.Unstructured, namespace string) ([]string, error) {
	var all []string
	for _, o := range objects {
		differs, err := c.differs(ctx, o, namespace)
		if err != nil {
			return nil, c.fail(err, "comparing %s", title(o))
		}
		if differs {
			all = append(all, title(o))
		}
	}
	return all, nil
}

func (c *Cluster) differs(ctx context.Context, o *unstructured.Unstructured, namespace string) (bool, error) {
	at, err := c.at(ctx, o, namespace)
	if meta.IsNoMatchError(err) {
		return true, nil // its kind may be defined by what comes before it
	}
	if err != nil {
		return false, err
	}
	live, err := at.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	keepNewer(o, live)
	would, err := at.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		// A change that is not allowed in place is a change; anyone who applies it hears the server's reason.
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return !equality.Semantic.DeepEqual(settled(live), settled(would)), nil
}

// settled returns o without what changes by itself.
func settled(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	return o.Object
}

// Apply applies the manifest's objects server-side with the field manager "kubexm", forcing conflicts: namespaces and
// definitions of kinds first, else in their order. It applies what it can; the error tells of every object that it
// could not.
func (c *Cluster) Apply(ctx context.Context, manifest []byte) error {
	objects, err := parse(manifest)
	if err != nil {
		return err
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	defined := definedKinds(objects)
	var failures []error
	for _, o := range objects {
		if err := c.apply(ctx, o, metav1.NamespaceDefault, defined[o.GroupVersionKind().GroupKind()]); err != nil {
			failures = append(failures, c.fail(err, "applying %s", title(o)))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

func (c *Cluster) apply(ctx context.Context, o *unstructured.Unstructured, namespace string, justDefined bool) error {
	at, err := c.at(ctx, o, namespace)
	if justDefined && meta.IsNoMatchError(err) {
		err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, established, true, func(ctx context.Context) (bool, error) {
			var no error
			if at, no = c.at(ctx, o, namespace); meta.IsNoMatchError(no) {
				return false, nil
			}
			return true, no
		})
		if wait.Interrupted(err) {
			err = fmt.Errorf("its kind is defined, but not served after %s: check the definition's conditions", established)
		}
	}
	if err != nil {
		return err
	}
	if _, keeps := o.GetAnnotations()[KeepsNewerAnnotation]; keeps {
		live, err := at.Get(ctx, o.GetName(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil {
			keepNewer(o, live)
		}
	}
	_, err = at.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// at returns where o lives, and gives it the namespace if it needs one and has none, as kubectl does.
func (c *Cluster) at(ctx context.Context, o *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := bounded(ctx, func() (*meta.RESTMapping, error) {
		return c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	})
	if err != nil {
		return nil, err
	}
	resource := c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return resource, nil
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(namespace)
	}
	return resource.Namespace(o.GetNamespace()), nil
}

// rank is the order in which objects must come: what others live in, what says what others are, the others.
func rank(o *unstructured.Unstructured) int {
	switch o.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return 0
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return 1
	}
	return 2
}

// definedKinds returns the kinds that the CustomResourceDefinitions among objects define.
func definedKinds(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if rank(o) == 1 {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			kinds[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return kinds
}

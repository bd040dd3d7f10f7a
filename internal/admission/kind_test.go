// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// A ConfigMap serves as an object whose data is its spec, in which the key bad is not allowed, and k never changes.
func kind(template bool) Kind[*corev1.ConfigMap] {
	return Kind[*corev1.ConfigMap]{
		GroupKind: schema.GroupKind{Kind: "ConfigMap"},
		Spec:      func(c *corev1.ConfigMap) any { return c.Data },
		Validate: func(c *corev1.ConfigMap) field.ErrorList {
			if _, bad := c.Data["bad"]; bad {
				return field.ErrorList{field.Forbidden(field.NewPath("data", "bad"), "remove it")}
			}
			return nil
		},
		ValidateUpdate: func(old, updated *corev1.ConfigMap) field.ErrorList {
			if old.Data["k"] != updated.Data["k"] {
				return field.ErrorList{field.Forbidden(field.NewPath("data", "k"), "set it back")}
			}
			return nil
		},
		Template: template,
	}
}

func object(key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{key: value}}
}

func TestValidateUpdate(t *testing.T) {
	dryRun := object("b", "2")
	dryRun.Annotations = map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
	relabelled := object("bad", "1")
	relabelled.Labels = map[string]string{"new": "label"}
	going := object("bad", "2")
	going.DeletionTimestamp = &metav1.Time{}
	going.DeletionTimestamp.Time = metav1.Now().Time

	for name, test := range map[string]struct {
		template     bool
		old, updated *corev1.ConfigMap
		dryRun       bool
		want         string
	}{
		"a change":                                {old: object("a", "1"), updated: object("a", "2")},
		"a change for the worse":                  {old: object("a", "1"), updated: object("bad", "1"), want: `ConfigMap "x" is invalid: data.bad: Forbidden: remove it`},
		"a refused change":                        {old: object("k", "1"), updated: object("k", "2"), want: `ConfigMap "x" is invalid: data.k: Forbidden: set it back`},
		"a label on what was bad already":         {old: object("bad", "1"), updated: relabelled},
		"what is being deleted":                   {old: object("bad", "1"), updated: going},
		"a template":                              {template: true, old: object("b", "1"), updated: object("b", "2"), want: `ConfigMap "x" is invalid: spec: Forbidden: a template cannot be changed: create another ConfigMap and refer to that`},
		"a template, annotated without a dry run": {template: true, old: object("b", "1"), updated: dryRun, want: `ConfigMap "x" is invalid: spec: Forbidden: a template cannot be changed: create another ConfigMap and refer to that`},
		"a template, in the topology's dry run":   {template: true, old: object("b", "1"), updated: dryRun, dryRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := admission.NewContextWithRequest(context.Background(), admission.Request{
				AdmissionRequest: admissionv1.AdmissionRequest{DryRun: ptr.To(test.dryRun)},
			})
			_, err := (&validator[*corev1.ConfigMap]{kind(test.template)}).ValidateUpdate(ctx, test.old, test.updated)
			got := ""
			if err != nil {
				got = err.Error()
				if !apierrors.IsInvalid(err) {
					t.Errorf("clients do not see that the object is invalid: %v", err)
				}
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestValidateDelete(t *testing.T) {
	k := kind(false)
	k.ValidateDelete = func(*corev1.ConfigMap) field.ErrorList {
		return field.ErrorList{field.Forbidden(field.NewPath("data"), "is in use: wait")}
	}
	_, err := (&validator[*corev1.ConfigMap]{k}).ValidateDelete(context.Background(), object("a", "1"))
	if !apierrors.IsForbidden(err) {
		t.Errorf("the deletion is not forbidden: %v", err)
	}
	if _, err := (&validator[*corev1.ConfigMap]{kind(false)}).ValidateDelete(context.Background(), object("a", "1")); err != nil {
		t.Errorf("a kind that says nothing of deletions refuses one: %v", err)
	}
}

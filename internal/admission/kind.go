// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission makes webhooks of pure functions, so that the same functions check an object where no webhook is
// asked: in a reconciler, in the command line, in a test.
package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/cluster-api/util/topology"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Kind is what is checked of the objects of one kind. Functions that are nil check nothing.
type Kind[T client.Object] struct {
	// GroupKind is for errors.
	GroupKind schema.GroupKind

	// Spec is the part of an object that users declare, with the metadata that Validate checks. An update that leaves
	// it alone is allowed whatever Validate says, so that a rule that is new does not keep old objects from being
	// labelled or released.
	Spec func(T) any

	// Default fills what was left out.
	Default func(T)

	// Validate checks an object by itself.
	Validate func(T) field.ErrorList

	// ValidateUpdate refuses changes. Objects that are being deleted are not asked about.
	ValidateUpdate func(old, updated T) field.ErrorList

	// ValidateDelete refuses a deletion.
	ValidateDelete func(T) field.ErrorList

	// Template is true of templates: nothing in their Spec can be changed, save in the dry runs with which Cluster API's
	// topology controller finds out what it would change.
	Template bool
}

// Register serves the kind's webhooks. Their paths are those that controller-runtime makes of group, version and kind.
func (k Kind[T]) Register(mgr ctrl.Manager, empty T) error {
	builder := ctrl.NewWebhookManagedBy(mgr, empty).WithValidator(&validator[T]{k})
	if k.Default != nil {
		builder = builder.WithDefaulter(&defaulter[T]{k})
	}
	if err := builder.Complete(); err != nil {
		return fmt.Errorf("serve the webhooks of %s: %w", k.GroupKind, err)
	}
	return nil
}

type defaulter[T client.Object] struct{ kind Kind[T] }

func (d *defaulter[T]) Default(_ context.Context, object T) error {
	d.kind.Default(object)
	return nil
}

type validator[T client.Object] struct{ kind Kind[T] }

func (v *validator[T]) ValidateCreate(_ context.Context, object T) (admission.Warnings, error) {
	return nil, v.kind.refuse(object, v.kind.validate(object))
}

func (v *validator[T]) ValidateUpdate(ctx context.Context, old, updated T) (admission.Warnings, error) {
	if !updated.GetDeletionTimestamp().IsZero() || equality.Semantic.DeepEqual(v.kind.Spec(old), v.kind.Spec(updated)) {
		return nil, nil
	}
	errs := v.kind.validate(updated)
	if v.kind.ValidateUpdate != nil {
		errs = append(errs, v.kind.ValidateUpdate(old, updated)...)
	}
	if v.kind.Template {
		request, err := admission.RequestFromContext(ctx)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("admission request of %s: %w", v.kind.GroupKind, err))
		}
		if !topology.IsDryRunRequest(request, updated) {
			errs = append(errs, field.Forbidden(field.NewPath("spec"),
				"a template cannot be changed: create another "+v.kind.GroupKind.Kind+" and refer to that"))
		}
	}
	return nil, v.kind.refuse(updated, errs)
}

func (v *validator[T]) ValidateDelete(_ context.Context, object T) (admission.Warnings, error) {
	if v.kind.ValidateDelete == nil {
		return nil, nil
	}
	errs := v.kind.ValidateDelete(object)
	if len(errs) == 0 {
		return nil, nil
	}
	return nil, apierrors.NewForbidden(schema.GroupResource{Group: v.kind.GroupKind.Group, Resource: v.kind.GroupKind.Kind},
		object.GetName(), errs.ToAggregate())
}

func (k Kind[T]) validate(object T) field.ErrorList {
	if k.Validate == nil {
		return nil
	}
	return k.Validate(object)
}

func (k Kind[T]) refuse(object T, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.GroupKind, object.GetName(), errs)
}

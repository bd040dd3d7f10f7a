// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmoperation,mutating=false,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmoperations,versions=v1beta1,name=validation.kubexmoperation.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var operation = admission.Kind[*bootstrapv1.KubexmOperation]{
	GroupKind:      bootstrapv1.GroupVersion.WithKind("KubexmOperation").GroupKind(),
	Spec:           func(o *bootstrapv1.KubexmOperation) any { return o.Spec },
	Validate:       ValidateOperation,
	ValidateUpdate: ValidateOperationUpdate,
}

// ValidateOperation checks of a KubexmOperation what its schema does not.
func ValidateOperation(o *bootstrapv1.KubexmOperation) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	name := path.Child("target", "name")
	for _, why := range apivalidation.NameIsDNSSubdomain(o.Spec.Target.Name, false) {
		errs = append(errs, field.Invalid(name, o.Spec.Target.Name, why))
	}
	components := path.Child("components")
	switch restarts := o.Spec.Type == bootstrapv1.RestartType; {
	case restarts && len(o.Spec.Components) == 0:
		errs = append(errs, field.Required(components, "name what is restarted: "+spec.JoinComponents(spec.Components)))
	case !restarts && len(o.Spec.Components) > 0:
		errs = append(errs, field.Forbidden(components, "of the type "+string(bootstrapv1.RestartType)+" alone"))
	}
	return errs
}

// ValidateOperationUpdate refuses every change of what is to be done: hosts were asked for it already.
func ValidateOperationUpdate(old, updated *bootstrapv1.KubexmOperation) field.ErrorList {
	const why = "an operation cannot be changed: create another one"
	var errs field.ErrorList
	path, a, b := field.NewPath("spec"), old.Spec, updated.Spec
	for _, one := range []struct {
		path *field.Path
		same bool
	}{
		{path.Child("type"), a.Type == b.Type},
		{path.Child("components"), slices.Equal(a.Components, b.Components)},
		{path.Child("target", "kind"), a.Target.Kind == b.Target.Kind},
		{path.Child("target", "name"), a.Target.Name == b.Target.Name},
		{path.Child("maxConcurrent"), ptr.Equal(a.MaxConcurrent, b.MaxConcurrent)},
		{path.Child("timeoutSeconds"), ptr.Equal(a.TimeoutSeconds, b.TimeoutSeconds)},
		{path.Child("ttlSecondsAfterFinished"), ptr.Equal(a.TTLSecondsAfterFinished, b.TTLSecondsAfterFinished)},
	} {
		if !one.same {
			errs = append(errs, field.Forbidden(one.path, why))
		}
	}
	return errs
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmremediation,mutating=false,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmremediations,versions=v1beta1,name=validation.kubexmremediation.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var remediation = admission.Kind[*bootstrapv1.KubexmRemediation]{
	GroupKind: bootstrapv1.GroupVersion.WithKind("KubexmRemediation").GroupKind(),
	Spec:      func(r *bootstrapv1.KubexmRemediation) any { return r.Spec },
	Validate:  ValidateRemediation,
}

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmremediationtemplate,mutating=false,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmremediationtemplates,versions=v1beta1,name=validation.kubexmremediationtemplate.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// Changing this template replaces nothing, unlike what Machines are made from, so it may be changed.
var remediationTemplate = admission.Kind[*bootstrapv1.KubexmRemediationTemplate]{
	GroupKind: bootstrapv1.GroupVersion.WithKind("KubexmRemediationTemplate").GroupKind(),
	Spec:      func(t *bootstrapv1.KubexmRemediationTemplate) any { return t.Spec },
	Validate:  ValidateRemediationTemplate,
}

// ValidateRemediation checks a KubexmRemediation.
func ValidateRemediation(r *bootstrapv1.KubexmRemediation) field.ErrorList {
	return validateRemediation(&r.Spec, field.NewPath("spec"))
}

// ValidateRemediationTemplate checks a KubexmRemediationTemplate.
func ValidateRemediationTemplate(t *bootstrapv1.KubexmRemediationTemplate) field.ErrorList {
	path := field.NewPath("spec", "template")
	errs := t.Spec.Template.ObjectMeta.Validate(path.Child("metadata"))
	return append(errs, validateRemediation(&t.Spec.Template.Spec, path.Child("spec"))...)
}

func validateRemediation(s *bootstrapv1.KubexmRemediationSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, one := range []struct {
		name  string
		value *int32
		none  string
	}{
		{"convergeTimeoutSeconds", s.ConvergeTimeoutSeconds, "not to converge hosts"},
		{"rebootTimeoutSeconds", s.RebootTimeoutSeconds, "not to reboot hosts"},
		{"minHealthyPeriodSeconds", s.MinHealthyPeriodSeconds, "to try all again each time"},
	} {
		if ptr.Deref(one.value, 0) < 0 {
			errs = append(errs, field.Invalid(path.Child(one.name), *one.value, "use seconds, or 0 "+one.none))
		}
	}
	return errs
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-kubexmmachine,mutating=false,failurePolicy=fail,groups=infrastructure.cluster.x-k8s.io,resources=kubexmmachines,versions=v1alpha1,name=validation.kubexmmachine.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var machine = admission.Kind[*infrav1.KubexmMachine]{
	GroupKind:      infrav1.GroupVersion.WithKind("KubexmMachine").GroupKind(),
	Spec:           func(m *infrav1.KubexmMachine) any { return m.Spec },
	Validate:       ValidateMachine,
	ValidateUpdate: ValidateMachineUpdate,
}

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-kubexmmachinetemplate,mutating=false,failurePolicy=fail,groups=infrastructure.cluster.x-k8s.io,resources=kubexmmachinetemplates,versions=v1alpha1,name=validation.kubexmmachinetemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var machineTemplate = admission.Kind[*infrav1.KubexmMachineTemplate]{
	GroupKind: infrav1.GroupVersion.WithKind("KubexmMachineTemplate").GroupKind(),
	Spec:      func(t *infrav1.KubexmMachineTemplate) any { return t.Spec },
	Validate:  ValidateMachineTemplate,
	Template:  true,
}

// ValidateMachine checks a KubexmMachine by itself.
func ValidateMachine(m *infrav1.KubexmMachine) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateMachineSpec(&m.Spec, path)
	id := m.Spec.ProviderID
	if namespace, host, found := strings.Cut(strings.TrimPrefix(id, infrav1.ProviderIDPrefix), "/"); id != "" &&
		(!strings.HasPrefix(id, infrav1.ProviderIDPrefix) || !found ||
			namespace != m.Namespace || len(validation.IsDNS1123Subdomain(host)) > 0) {
		errs = append(errs, field.Invalid(path.Child("providerID"), id, fmt.Sprintf(
			"leave it out, and it becomes %s%s/ and the name of the claimed host", infrav1.ProviderIDPrefix, m.Namespace)))
	}
	return errs
}

// ValidateMachineUpdate keeps what a Machine's Node is found by, and what chose its host.
func ValidateMachineUpdate(old, updated *infrav1.KubexmMachine) field.ErrorList {
	path := field.NewPath("spec")
	if old.Spec.ProviderID == "" {
		return nil
	}
	var errs field.ErrorList
	if was, is := old.Spec.ProviderID, updated.Spec.ProviderID; was != is {
		errs = append(errs, field.Invalid(path.Child("providerID"), is, fmt.Sprintf("cannot be changed once it is set: set it back to %s", was)))
	}
	const claimed = "the Machine has its host: delete the Machine, and make another to choose another host"
	if old.Spec.HostName != updated.Spec.HostName {
		errs = append(errs, field.Forbidden(path.Child("hostName"), claimed))
	}
	if !equality.Semantic.DeepEqual(old.Spec.HostSelector, updated.Spec.HostSelector) {
		errs = append(errs, field.Forbidden(path.Child("hostSelector"), claimed))
	}
	if !equality.Semantic.DeepEqual(old.Spec.Requirements, updated.Spec.Requirements) {
		errs = append(errs, field.Forbidden(path.Child("requirements"), claimed))
	}
	if !equality.Semantic.DeepEqual(old.Spec.Preferences, updated.Spec.Preferences) {
		errs = append(errs, field.Forbidden(path.Child("preferences"), claimed))
	}
	return errs
}

// ValidateMachineTemplate checks a KubexmMachineTemplate.
func ValidateMachineTemplate(t *infrav1.KubexmMachineTemplate) field.ErrorList {
	path := field.NewPath("spec", "template")
	errs := t.Spec.Template.ObjectMeta.Validate(path.Child("metadata"))
	if t.Spec.Template.Spec.ProviderID != "" {
		errs = append(errs, field.Forbidden(path.Child("spec", "providerID"), "each Machine has its own, which it gets with its host: remove it"))
	}
	return append(errs, validateMachineSpec(&t.Spec.Template.Spec, path.Child("spec"))...)
}

func validateMachineSpec(s *infrav1.KubexmMachineSpec, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabelSelector(s.HostSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("hostSelector"))
	if s.HostName != "" && len(validation.IsDNS1123Subdomain(s.HostName)) > 0 {
		errs = append(errs, field.Invalid(path.Child("hostName"), s.HostName, "use the name of a KubexmHost in this namespace"))
	}
	errs = append(errs, validateCapacity(s.Requirements, path.Child("requirements"))...)
	for i := range s.Preferences {
		p, at := &s.Preferences[i], path.Child("preferences").Index(i)
		if p.Weight < 1 || p.Weight > 100 {
			errs = append(errs, field.Invalid(at.Child("weight"), p.Weight, "use a weight from 1 to 100"))
		}
		if len(p.Selector.MatchLabels)+len(p.Selector.MatchExpressions) == 0 {
			errs = append(errs, field.Required(at.Child("selector"), "it would select all hosts: give labels that some have"))
		}
		errs = append(errs,
			metav1validation.ValidateLabelSelector(&p.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	return errs
}

// validateCapacity checks an amount that hosts have, or must have.
func validateCapacity(c infrav1.HostCapacity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.CPUs < 0 {
		errs = append(errs, field.Invalid(path.Child("cpus"), c.CPUs, "use a number of processors, or leave it out"))
	}
	if c.Memory.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("memory"), c.Memory.String(), "use an amount of memory such as 32Gi, or leave it out"))
	}
	return errs
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-controlplane-cluster-x-k8s-io-v1beta1-kubexmcontrolplanetemplate,mutating=false,failurePolicy=fail,groups=controlplane.cluster.x-k8s.io,resources=kubexmcontrolplanetemplates,versions=v1beta1,name=validation.kubexmcontrolplanetemplate.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var controlPlaneTemplate = admission.Kind[*controlplanev1.KubexmControlPlaneTemplate]{
	GroupKind: controlplanev1.GroupVersion.WithKind("KubexmControlPlaneTemplate").GroupKind(),
	Spec:      func(t *controlplanev1.KubexmControlPlaneTemplate) any { return t.Spec },
	Validate:  ValidateControlPlaneTemplate,
	Template:  true,
}

// ValidateControlPlaneTemplate checks a KubexmControlPlaneTemplate.
func ValidateControlPlaneTemplate(t *controlplanev1.KubexmControlPlaneTemplate) field.ErrorList {
	path := field.NewPath("spec", "template")
	template := &t.Spec.Template
	errs := template.ObjectMeta.Validate(path.Child("metadata"))
	machines := path.Child("spec", "machineTemplate")
	errs = append(errs, template.Spec.MachineTemplate.ObjectMeta.Validate(machines.Child("metadata"))...)
	errs = append(errs, validateTaints(template.Spec.MachineTemplate.Spec.Taints, machines.Child("spec", "taints"))...)
	errs = append(errs, validateRollout(&template.Spec.Rollout, nil, &template.Spec.Cluster, path.Child("spec", "rollout"))...)
	errs = append(errs, validateNaming(template.Spec.MachineNaming, path.Child("spec", "machineNaming"))...)
	errs = append(errs, validateEndpoint(template.Spec.ControlPlaneEndpoint, &template.Spec.Cluster, path.Child("spec"))...)
	return append(errs, validateHosts(template.Spec.ControlPlaneEndpoint, &template.Spec.Cluster, &template.Spec.Node, path.Child("spec"))...)
}

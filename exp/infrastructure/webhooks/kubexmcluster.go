// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-kubexmcluster,mutating=false,failurePolicy=fail,groups=infrastructure.cluster.x-k8s.io,resources=kubexmclusters,versions=v1alpha1,name=validation.kubexmcluster.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var cluster = admission.Kind[*infrav1.KubexmCluster]{
	GroupKind:      infrav1.GroupVersion.WithKind("KubexmCluster").GroupKind(),
	Spec:           func(c *infrav1.KubexmCluster) any { return c.Spec },
	Validate:       ValidateCluster,
	ValidateUpdate: ValidateClusterUpdate,
}

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-kubexmclustertemplate,mutating=false,failurePolicy=fail,groups=infrastructure.cluster.x-k8s.io,resources=kubexmclustertemplates,versions=v1alpha1,name=validation.kubexmclustertemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var clusterTemplate = admission.Kind[*infrav1.KubexmClusterTemplate]{
	GroupKind: infrav1.GroupVersion.WithKind("KubexmClusterTemplate").GroupKind(),
	Spec:      func(t *infrav1.KubexmClusterTemplate) any { return t.Spec },
	Validate:  ValidateClusterTemplate,
	Template:  true,
}

// ValidateCluster checks a KubexmCluster by itself.
func ValidateCluster(c *infrav1.KubexmCluster) field.ErrorList {
	return validateEndpoint(c.Spec.ControlPlaneEndpoint, field.NewPath("spec", "controlPlaneEndpoint"))
}

// ValidateClusterTemplate checks a KubexmClusterTemplate.
func ValidateClusterTemplate(t *infrav1.KubexmClusterTemplate) field.ErrorList {
	path := field.NewPath("spec", "template")
	errs := t.Spec.Template.ObjectMeta.Validate(path.Child("metadata"))
	return append(errs, validateEndpoint(t.Spec.Template.Spec.ControlPlaneEndpoint, path.Child("spec", "controlPlaneEndpoint"))...)
}

func validateEndpoint(endpoint clusterv1.APIEndpoint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	_, notIP := netip.ParseAddr(endpoint.Host)
	if endpoint.Host != "" && notIP != nil && len(validation.IsDNS1123Subdomain(endpoint.Host)) > 0 {
		errs = append(errs, field.Invalid(path.Child("host"), endpoint.Host, "use an IP address or a DNS name in lower case, such as api.prod.example"))
	}
	if endpoint.Port < 0 || endpoint.Port > 65535 {
		errs = append(errs, field.Invalid(path.Child("port"), endpoint.Port, "use a port, 1 to 65535, or leave it out for 6443"))
	}
	return errs
}

// ValidateClusterUpdate keeps the endpoint once it is set: every host and certificate of the cluster has it.
func ValidateClusterUpdate(old, updated *infrav1.KubexmCluster) field.ErrorList {
	path := field.NewPath("spec", "controlPlaneEndpoint")
	was, is := old.Spec.ControlPlaneEndpoint, updated.Spec.ControlPlaneEndpoint
	var errs field.ErrorList
	if was.Host != "" && is.Host != was.Host {
		errs = append(errs, field.Invalid(path.Child("host"), is.Host, fmt.Sprintf("cannot be changed once it is set: set it back to %s", was.Host)))
	}
	if was.Port != 0 && is.Port != was.Port {
		errs = append(errs, field.Invalid(path.Child("port"), is.Port, fmt.Sprintf("cannot be changed once it is set: set it back to %d", was.Port)))
	}
	return errs
}

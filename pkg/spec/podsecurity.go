// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PodSecurityLevel is one of the Pod Security Standards.
//
// +kubebuilder:validation:Enum=privileged;baseline;restricted
type PodSecurityLevel string

const (
	// PodSecurityPrivileged restricts nothing.
	PodSecurityPrivileged PodSecurityLevel = "privileged"
	// PodSecurityBaseline prevents known privilege escalations.
	PodSecurityBaseline PodSecurityLevel = "baseline"
	// PodSecurityRestricted follows current practice for hardening Pods.
	PodSecurityRestricted PodSecurityLevel = "restricted"
)

// PodSecurity are the levels of the Pod Security Standards for namespaces without labels of their own
// (pod-security.kubernetes.io/enforce and so on). The namespaces kube-system and kube-flannel are exempt.
//
// +kubebuilder:validation:MinProperties=1
type PodSecurity struct {
	// enforce is the level beyond which Pods are refused. If unset, privileged.
	// +optional
	Enforce PodSecurityLevel `json:"enforce,omitempty"`

	// audit is the level beyond which Pods are noted in the audit log. If unset, that of enforce.
	// +optional
	Audit PodSecurityLevel `json:"audit,omitempty"`

	// warn is the level beyond which users are warned. If unset, that of enforce.
	// +optional
	Warn PodSecurityLevel `json:"warn,omitempty"`

	// exemptNamespaces are further namespaces whose Pods are not restricted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	ExemptNamespaces []string `json:"exemptNamespaces,omitempty"`
}

// Restricts reports whether any level is more than privileged, which is what Kubernetes does by itself.
func (p *PodSecurity) Restricts() bool {
	return p.Enforce != PodSecurityPrivileged || p.Audit != PodSecurityPrivileged || p.Warn != PodSecurityPrivileged
}

func (p *PodSecurity) setDefaults() {
	defaultTo(&p.Enforce, PodSecurityPrivileged)
	defaultTo(&p.Audit, p.Enforce)
	defaultTo(&p.Warn, p.Enforce)
}

func (p *PodSecurity) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	namespaces := path.Child("exemptNamespaces")
	for i, name := range p.ExemptNamespaces {
		if len(validation.IsDNS1123Label(name)) > 0 {
			errs = append(errs, field.Invalid(namespaces.Index(i), name, "use a namespace's name, such as monitoring"))
		}
	}
	if len(p.ExemptNamespaces) > 0 && !p.Restricts() {
		errs = append(errs, field.Forbidden(namespaces, "nothing is restricted: remove it, or set a level other than privileged"))
	}
	return append(errs, unique(namespaces, p.ExemptNamespaces, itself)...)
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// AuditLevel is how much of each request the API server records.
//
// +kubebuilder:validation:Enum=None;Metadata;Request;RequestResponse
type AuditLevel string

const (
	// AuditNone records nothing.
	AuditNone AuditLevel = "None"
	// AuditMetadata records who asked for what, when, and the outcome.
	AuditMetadata AuditLevel = "Metadata"
	// AuditRequest records the request's body too, but never of Secrets, ConfigMaps and tokens.
	AuditRequest AuditLevel = "Request"
	// AuditRequestResponse records the bodies of request and response, but never of Secrets, ConfigMaps and tokens.
	AuditRequestResponse AuditLevel = "RequestResponse"
)

// Audit is the API server's audit log, /var/log/kubernetes/audit/audit.log on each control plane host.
//
// +kubebuilder:validation:MinProperties=1
type Audit struct {
	// level is how much of each request is recorded. If unset, Metadata. None turns the log off. With a policy it is left out.
	// +optional
	Level AuditLevel `json:"level,omitempty"`

	// policy is an audit policy (audit.k8s.io/v1) in YAML, in place of the one that follows from level.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Policy string `json:"policy,omitempty"`

	// maxAgeDays is for how many days files of the log are kept. If unset, 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	MaxAgeDays int32 `json:"maxAgeDays,omitempty"`

	// maxBackups is how many files of the log are kept besides the one that is written. If unset, 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxBackups int32 `json:"maxBackups,omitempty"`

	// maxSizeMegabytes is how large a file of the log becomes before another is begun. If unset, 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10240
	MaxSizeMegabytes int32 `json:"maxSizeMegabytes,omitempty"`
}

// IsOn reports whether there is an audit log.
func (a *Audit) IsOn() bool { return a.Level != AuditNone }

func (a *Audit) setDefaults() {
	defaultTo(&a.Level, AuditMetadata)
	defaultTo(&a.MaxAgeDays, 30)
	defaultTo(&a.MaxBackups, 10)
	defaultTo(&a.MaxSizeMegabytes, 100)
}

func (a *Audit) validate(path *field.Path) field.ErrorList {
	if a.Policy == "" {
		return nil
	}
	var errs field.ErrorList
	at := path.Child("policy")
	if !a.IsOn() {
		errs = append(errs, field.Forbidden(at, "the level None turns the audit log off: remove the policy, or set another level"))
	} else if a.Level != AuditMetadata {
		errs = append(errs, field.Forbidden(path.Child("level"), fmt.Sprintf("%s says what is recorded: remove one of both", at)))
	}
	var policy struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Rules      []map[string]any `json:"rules"`
	}
	err := yaml.Unmarshal([]byte(a.Policy), &policy)
	if err != nil || policy.APIVersion != "audit.k8s.io/v1" || policy.Kind != "Policy" || len(policy.Rules) == 0 {
		errs = append(errs, field.Invalid(at, "(policy)", "use a document of apiVersion audit.k8s.io/v1 and kind Policy that has rules"))
	}
	return errs
}

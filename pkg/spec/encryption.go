// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EncryptionProvider is what the API server encrypts with, by the names of EncryptionConfiguration (apiserver.config.k8s.io/v1).
//
// +kubebuilder:validation:Enum=Secretbox;AESCBC;None
type EncryptionProvider string

const (
	// EncryptionSecretbox is XSalsa20 and Poly1305.
	EncryptionSecretbox EncryptionProvider = "Secretbox"
	// EncryptionAESCBC is AES-CBC with PKCS#7 padding, for those who must use AES. It does not notice a change of what it has encrypted.
	EncryptionAESCBC EncryptionProvider = "AESCBC"
	// EncryptionNone encrypts nothing.
	EncryptionNone EncryptionProvider = "None"
)

// EncryptionAtRest is what the API server encrypts before etcd stores it, with a key that is made for the cluster and kept as its
// certificate authorities are. It is for the life of the cluster: an API server that does not have the key, or does not use it, cannot
// read what the others have written.
//
// +kubebuilder:validation:MinProperties=1
type EncryptionAtRest struct {
	// provider is what is encrypted with. If unset when the KubexmControlPlane is created, Secretbox is written here, or None where
	// apiServer.extraArgs has encryption-provider-config; in an object from before there was this field, unset is None. It cannot be
	// changed later.
	// +optional
	Provider EncryptionProvider `json:"provider,omitempty"`

	// resources are what is encrypted: resources of the core group by their names, others as name.group, such as
	// widgets.example.com. Secrets must be among them. If unset, secrets alone. It cannot be changed later.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	Resources []string `json:"resources,omitempty"`
}

// IsOn reports whether anything is encrypted.
func (e *EncryptionAtRest) IsOn() bool { return e.Provider != "" && e.Provider != EncryptionNone }

// providerFlag is the API server's flag that names its EncryptionConfiguration.
const providerFlag = "encryption-provider-config"

// EncryptByDefault writes down whether a cluster that is made now encrypts, where nothing is said. It is no part of Default, which says
// what an object means that exists: no running cluster can follow another answer.
func (k *Kubernetes) EncryptByDefault() {
	if k.EncryptionAtRest.Provider != "" {
		return
	}
	k.EncryptionAtRest.Provider = EncryptionSecretbox
	if slices.ContainsFunc(k.APIServer.ExtraArgs, func(a Arg) bool { return a.Name == providerFlag }) {
		k.EncryptionAtRest.Provider = EncryptionNone
	}
}

func (e *EncryptionAtRest) setDefaults() {
	defaultTo(&e.Provider, EncryptionNone)
	if e.IsOn() && len(e.Resources) == 0 {
		e.Resources = []string{"secrets"}
	}
}

// coreResources are those of Kubernetes' core group that are stored. A name that is none of them would encrypt nothing.
var coreResources = []string{
	"configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods",
	"podtemplates", "replicationcontrollers", "resourcequotas", "secrets", "serviceaccounts", "services",
}

var resourceName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func (e *EncryptionAtRest) validate(path *field.Path, flags []Arg) field.ErrorList {
	var errs field.ErrorList
	resources := path.Child("resources")
	if !e.IsOn() {
		if len(e.Resources) > 0 {
			errs = append(errs, field.Forbidden(resources, fmt.Sprintf("nothing is encrypted: remove it, or set %s", path.Child("provider"))))
		}
		return errs
	}
	for i, f := range flags {
		if strings.HasPrefix(f.Name, providerFlag) {
			errs = append(errs, field.Forbidden(path.Child("provider"), fmt.Sprintf(
				"apiServer.extraArgs[%d] sets %s, and the API server takes one configuration: remove the flag, or set this to None", i, f.Name)))
		}
	}
	for i, r := range e.Resources {
		name, group, grouped := strings.Cut(r, ".")
		switch at := resources.Index(i); {
		case !resourceName.MatchString(name) || grouped && !isDomain(group):
			errs = append(errs, field.Invalid(at, r, "use a resource's name, such as configmaps, or name and group, such as widgets.example.com; no wildcards"))
		case group == "events.k8s.io":
			errs = append(errs, field.Invalid(at, r, "events are stored in the core group: use events"))
		case group == "extensions":
			errs = append(errs, field.Invalid(at, r, "nothing is stored in the group extensions any more: use the resource's present group"))
		case !grouped && !slices.Contains(coreResources, r):
			errs = append(errs, field.NotSupported(at, r, coreResources))
		}
	}
	if !slices.Contains(e.Resources, "secrets") {
		errs = append(errs, field.Required(resources, "Secrets must be among what is encrypted: add secrets"))
	}
	return append(errs, unique(resources, e.Resources, itself)...)
}

// ValidateEncryptionUpdate refuses what would leave API servers unable to read what others have written. It compares as if both had their
// defaults.
func ValidateEncryptionUpdate(old, updated *EncryptionAtRest, path *field.Path) field.ErrorList {
	was, is := old.DeepCopy(), updated.DeepCopy()
	was.setDefaults()
	is.setDefaults()
	const remedy = "cannot be changed once the cluster exists, as API servers could not read what others have written: set it back to %q, " +
		"or create another cluster"
	switch {
	case was.Provider != is.Provider:
		return field.ErrorList{field.Invalid(path.Child("provider"), is.Provider, fmt.Sprintf(remedy, was.Provider))}
	case !slices.Equal(slices.Sorted(slices.Values(was.Resources)), slices.Sorted(slices.Values(is.Resources))):
		return field.ErrorList{field.Invalid(path.Child("resources"), is.Resources, fmt.Sprintf(remedy, fmt.Sprint(was.Resources)))}
	}
	return nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// File is a file on a host, with its content here or in a Secret.
//
// +kubebuilder:validation:XValidation:rule="has(self.content) != has(self.contentFrom)",message="set exactly one of content and contentFrom"
type File struct {
	// path is the file's absolute path.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// mode is the file's permissions in octal digits. If unset, 0644, or 0600 with contentFrom.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=4
	Mode string `json:"mode,omitempty"`

	// owner is the file's user, or user:group, as names or numbers. If unset, root:root.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65
	Owner string `json:"owner,omitempty"`

	// content is the file's content.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Content string `json:"content,omitempty"`

	// contentFrom is where the file's content comes from.
	// +optional
	ContentFrom ContentSource `json:"contentFrom,omitempty,omitzero"`
}

// ContentSource is where a file's content comes from.
type ContentSource struct {
	// secret is a key of a Secret in the namespace of the object that names it.
	// +required
	Secret SecretKey `json:"secret,omitempty,omitzero"`
}

// SecretKey is one key of a Secret.
type SecretKey struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key is the key in the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

func (f *File) setDefaults() {
	defaultTo(&f.Owner, "root:root")
	if f.ContentFrom == (ContentSource{}) {
		defaultTo(&f.Mode, "0644")
	} else {
		defaultTo(&f.Mode, "0600")
	}
}

var (
	fileMode  = regexp.MustCompile(`^[0-7]{3,4}$`)
	fileOwner = regexp.MustCompile(`^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10})(:([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10}))?$`)
)

// notForFiles are directories in which only the kernel or kubexm writes.
var notForFiles = []string{"/proc", "/sys", "/dev", "/var/lib/kubexm"}

func (f *File) validate(path *field.Path) field.ErrorList {
	errs := validateAbsolute(path.Child("path"), f.Path)
	for _, dir := range notForFiles {
		if isWithin(f.Path, dir) {
			errs = append(errs, field.Invalid(path.Child("path"), f.Path, "lies in "+dir+", where files cannot be kept: use another directory"))
		}
	}
	if !fileMode.MatchString(f.Mode) {
		errs = append(errs, field.Invalid(path.Child("mode"), f.Mode, "use three or four octal digits, such as 0644"))
	}
	if !fileOwner.MatchString(f.Owner) {
		errs = append(errs, field.Invalid(path.Child("owner"), f.Owner, "use user or user:group, as names or numbers, such as root:root"))
	}
	from, secret := path.Child("contentFrom"), f.ContentFrom.Secret
	switch {
	case f.Content == "" && f.ContentFrom == (ContentSource{}):
		errs = append(errs, field.Required(path.Child("content"), "give the file's content, or contentFrom"))
	case f.Content != "" && f.ContentFrom != (ContentSource{}):
		errs = append(errs, field.Forbidden(from, "a file's content comes from one place: remove contentFrom or content"))
	case f.Content == "":
		errs = append(errs, validateSecretName(from.Child("secret", "name"), secret.Name)...)
		if len(validation.IsConfigMapKey(secret.Key)) > 0 {
			errs = append(errs, field.Invalid(from.Child("secret", "key"), secret.Key, "use a key of the Secret's data"))
		}
	}
	return errs
}

// ownSecrets are the names by which plans know the cluster's own key pairs, its encryption key and its kubeconfig.
var ownSecrets = []string{"ca", "etcd", "proxy", "sa", "encryption", "kubeconfig"}

// validateSecretName checks the name of a user's Secret.
func validateSecretName(path *field.Path, name string) field.ErrorList {
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return field.ErrorList{field.Invalid(path, name, "use the name of a Secret")}
	case slices.Contains(ownSecrets, name):
		return field.ErrorList{field.Invalid(path, name, "this is what the cluster's own key pairs are called: give the Secret another name")}
	}
	return nil
}

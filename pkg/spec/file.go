// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// FileEncoding is how a file's content is written down.
//
// +kubebuilder:validation:Enum=Base64;Gzip;GzipBase64
type FileEncoding string

const (
	// EncodingBase64 is base64, with padding.
	EncodingBase64 FileEncoding = "Base64"
	// EncodingGzip is gzip.
	EncodingGzip FileEncoding = "Gzip"
	// EncodingGzipBase64 is base64 of gzip.
	EncodingGzipBase64 FileEncoding = "GzipBase64"
)

// FileAppend is whether content is added to what a file has.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type FileAppend string

const (
	// AppendEnabled adds the content to what the file has.
	AppendEnabled FileAppend = "Enabled"
	// AppendDisabled makes the content all that the file has.
	AppendDisabled FileAppend = "Disabled"
)

// ContentFormat is what a file's content is.
//
// +kubebuilder:validation:Enum=Plain;Template
type ContentFormat string

const (
	// ContentPlain is written as it is.
	ContentPlain ContentFormat = "Plain"
	// ContentTemplate is a template of Go, of values of the host.
	ContentTemplate ContentFormat = "Template"
)

// File is a file on a host, with its content here or in a Secret.
//
// +kubebuilder:validation:XValidation:rule="has(self.content) != has(self.contentFrom)",message="set exactly one of content and contentFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.append) || self.append != 'Enabled' || has(self.content)",message="content of a Secret cannot be appended: set content, or leave out append"
// +kubebuilder:validation:XValidation:rule="!has(self.append) || self.append != 'Enabled' || (!has(self.permissions) && !has(self.owner))",message="what is appended to keeps its permissions and owner: leave out permissions and owner, or append"
// +kubebuilder:validation:XValidation:rule="!has(self.contentFormat) || self.contentFormat != 'Template' || (has(self.content) && !has(self.encoding))",message="a template is written in content, without encoding: set content, and leave out encoding"
// +kubebuilder:validation:XValidation:rule="!has(self.encoding) || self.encoding != 'Gzip' || !has(self.content)",message="gzip is no text: use GzipBase64, or contentFrom"
type File struct {
	// path is the file's absolute path.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// permissions are the file's, in octal digits. If unset, 0644, or 0600 with contentFrom. What is appended to keeps its own.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=4
	Permissions string `json:"permissions,omitempty"`

	// owner is the file's user, or user:group, as names or numbers. If unset, root:root. What is appended to keeps its own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65
	Owner string `json:"owner,omitempty"`

	// encoding is how the content is written down, here or in the Secret: Base64, Gzip or GzipBase64. The file has what it decodes to,
	// which is at most 1 MiB. If unset, the file has the content itself.
	// +optional
	Encoding FileEncoding `json:"encoding,omitempty"`

	// append is whether the content is added to what the file has: between two lines of comments (#) that mark it, so that it is there
	// once however often it is written, and is replaced when it changes. If unset, Disabled: the content is all that the file has.
	// +optional
	Append FileAppend `json:"append,omitempty"`

	// content is the file's content.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Content string `json:"content,omitempty"`

	// contentFormat is Plain, or Template: content is a template of Go (text/template), of these values: {{ .name }} is the host's name in
	// the cluster, {{ .address }} its Node's address, .addresses all of its addresses, {{ .role }} its role, {{ .cluster }} the cluster's
	// name, and {{ .kubernetesVersion }} such as v1.36.3. Loops are over .addresses alone, templates have no templates, and their functions
	// are and, or, not, eq, ne, lt, le, gt, ge, len and index. If unset, Plain.
	// +optional
	ContentFormat ContentFormat `json:"contentFormat,omitempty"`

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

// IsAppended reports whether the content is added to what the file has.
func (f *File) IsAppended() bool { return f.Append == AppendEnabled }

func (f *File) setDefaults() {
	switch {
	case f.IsAppended():
		return
	case f.ContentFrom == (ContentSource{}):
		defaultTo(&f.Permissions, "0644")
	default:
		defaultTo(&f.Permissions, "0600")
	}
	defaultTo(&f.Owner, "root:root")
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
	switch {
	case f.IsAppended() && (f.Permissions != "" || f.Owner != ""):
		errs = append(errs, field.Forbidden(path.Child("append"), "what is appended to keeps its permissions and owner: remove permissions and owner, or append"))
	case !f.IsAppended() && !fileMode.MatchString(f.Permissions):
		errs = append(errs, field.Invalid(path.Child("permissions"), f.Permissions, "use three or four octal digits, such as 0644"))
	}
	if !f.IsAppended() && !fileOwner.MatchString(f.Owner) {
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
	return append(errs, f.validateContent(path)...)
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

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmconfig,mutating=false,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs,versions=v1beta1,name=validation.kubexmconfig.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var config = admission.Kind[*bootstrapv1.KubexmConfig]{
	GroupKind: bootstrapv1.GroupVersion.WithKind("KubexmConfig").GroupKind(),
	Spec:      func(c *bootstrapv1.KubexmConfig) any { return c.Spec },
	Validate:  ValidateConfig,
}

// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmconfigtemplate,mutating=false,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigtemplates,versions=v1beta1,name=validation.kubexmconfigtemplate.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var configTemplate = admission.Kind[*bootstrapv1.KubexmConfigTemplate]{
	GroupKind: bootstrapv1.GroupVersion.WithKind("KubexmConfigTemplate").GroupKind(),
	Spec:      func(t *bootstrapv1.KubexmConfigTemplate) any { return t.Spec },
	Validate:  ValidateConfigTemplate,
	Template:  true,
}

// ValidateConfig checks a KubexmConfig. Every part of its spec may be changed: the host follows.
func ValidateConfig(c *bootstrapv1.KubexmConfig) field.ErrorList {
	return validateSpec(&c.Spec, field.NewPath("spec"))
}

// ValidateConfigTemplate checks a KubexmConfigTemplate.
func ValidateConfigTemplate(t *bootstrapv1.KubexmConfigTemplate) field.ErrorList {
	path := field.NewPath("spec", "template")
	errs := t.Spec.Template.ObjectMeta.Validate(path.Child("metadata"))
	return append(errs, validateSpec(&t.Spec.Template.Spec, path.Child("spec"))...)
}

func validateSpec(s *bootstrapv1.KubexmConfigSpec, path *field.Path) field.ErrorList {
	node := s.Node.DeepCopy()
	node.Default()
	errs := node.Validate(path)
	if ssh := &s.SSH; ssh.User != "" || ssh.Port != 0 || ssh.CredentialsRef.Name != "" || len(ssh.HostKeys) > 0 {
		errs = append(errs, validateSSH(ssh, path.Child("ssh"))...)
	}
	return errs
}

func validateSSH(ssh *bootstrapv1.SSH, path *field.Path) field.ErrorList {
	errs := spec.ValidateUser(ssh.User, path.Child("user"))
	if ssh.Port < 0 || ssh.Port > 65535 {
		errs = append(errs, field.Invalid(path.Child("port"), ssh.Port, "use the port of the hosts' sshd, 1 to 65535, or leave it out for 22"))
	}
	if name := path.Child("credentialsRef", "name"); ssh.CredentialsRef.Name == "" {
		errs = append(errs, field.Required(name, "name a Secret in this namespace with ssh-privatekey or password"))
	} else if len(validation.IsDNS1123Subdomain(ssh.CredentialsRef.Name)) > 0 {
		errs = append(errs, field.Invalid(name, ssh.CredentialsRef.Name, "use the name of a Secret in this namespace"))
	}
	keys := path.Child("hostKeys")
	if len(ssh.HostKeys) == 0 {
		errs = append(errs, spec.ValidateHostKey("", keys)...)
	}
	for i, key := range ssh.HostKeys {
		errs = append(errs, spec.ValidateHostKey(key, keys.Index(i))...)
		if slices.Contains(ssh.HostKeys[:i], key) {
			errs = append(errs, field.Duplicate(keys.Index(i), key))
		}
	}
	return errs
}

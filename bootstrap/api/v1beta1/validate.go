// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// ValidateRules checks what a host must be, as if it had its defaults: what its schema does not say.
func (s *KubexmConfigSpec) ValidateRules(path *field.Path) field.ErrorList {
	node := s.Node.DeepCopy()
	node.Default()
	errs := node.ValidateRules(path)
	if !s.Access.IsZero() {
		errs = append(errs, s.Access.ValidateDeclared(path.Child("access"))...)
	}
	const byBootstrapData = "the host is let in and known by what its bootstrap data brings: remove it"
	if s.Access.Credentials.UserCA != (spec.UserCA{}) {
		errs = append(errs, field.Forbidden(path.Child("access", "credentials", "userCA"), byBootstrapData))
	}
	if len(s.Access.HostKeys.Authorities) > 0 {
		errs = append(errs, field.Forbidden(path.Child("access", "hostKeys", "authorities"), byBootstrapData))
	}
	return errs
}

// ValidateTemplate checks what hosts that are made from a template must be.
func (s *KubexmConfigSpec) ValidateTemplate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, one := range []struct {
		name string
		set  bool
	}{{"hostRef", s.HostRef != (HostReference{})}, {"bootstrapMode", s.BootstrapMode != ""}} {
		if one.set {
			errs = append(errs, field.Forbidden(path.Child(one.name), "it is one host's, and a template is for many: remove it"))
		}
	}
	return append(errs, s.ValidateRules(path)...)
}

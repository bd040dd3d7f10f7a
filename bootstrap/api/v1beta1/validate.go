// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"slices"

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
	if p := s.Access.Credentials.UserCA.Principal; p != "" {
		errs = append(errs, spec.ValidateAuthorizedPrincipal(p, path.Child("access", "credentials", "userCA", "principal"))...)
	}
	if len(s.Access.HostKeys.Authorities) > 0 {
		errs = append(errs, field.Forbidden(path.Child("access", "hostKeys", "authorities"), "the host is known by what its bootstrap data brings: remove it"))
	}
	return append(errs, s.validateAccessPolicy(path)...)
}

// validateAccessPolicy refuses to close what nobody of ours has opened, or has to enter again.
func (s *KubexmConfigSpec) validateAccessPolicy(path *field.Path) field.ErrorList {
	at := path.Child("accessPolicy")
	switch policies := []spec.AccessPolicy{spec.AccessOpen, spec.AccessClosed}; {
	case s.AccessPolicy != "" && !slices.Contains(policies, s.AccessPolicy):
		return field.ErrorList{field.NotSupported(at, s.AccessPolicy, policies)}
	case s.AccessPolicy != "" && s.HostRef != (HostReference{}):
		return field.ErrorList{field.Forbidden(at, "no bootstrap data has opened a host of the inventory, whose access is its KubexmHost's: remove it")}
	case s.AccessPolicy != spec.AccessClosed:
		return nil
	case len(s.Access.HostKeys.Pinned) > 0:
		return field.ErrorList{field.Forbidden(at, "with access.hostKeys.pinned, it is the image that lets us in, which is not undone: remove either")}
	case s.Access.Connection == spec.ConnectionCallHome:
		return field.ErrorList{field.Forbidden(at, "with access.connection: CallHome, it is the host that connects to the manager, and one that is "+
			"closed is silent like one that is off: remove either")}
	case s.Reset.Policy == spec.ResetAlways:
		return field.ErrorList{field.Forbidden(at, "a host that nobody logs in on cannot be reset, which reset.policy asks for: "+
			"set that to WhenReachable or Never, or leave the access open")}
	}
	return nil
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

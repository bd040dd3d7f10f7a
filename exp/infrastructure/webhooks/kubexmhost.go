// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// +kubebuilder:webhook:verbs=create;update;delete,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-kubexmhost,mutating=false,failurePolicy=fail,groups=infrastructure.cluster.x-k8s.io,resources=kubexmhosts,versions=v1alpha1,name=validation.kubexmhost.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var host = admission.Kind[*infrav1.KubexmHost]{
	GroupKind:      infrav1.GroupVersion.WithKind("KubexmHost").GroupKind(),
	Spec:           func(h *infrav1.KubexmHost) any { return h.Spec },
	Validate:       ValidateHost,
	ValidateUpdate: ValidateHostUpdate,
	ValidateDelete: ValidateHostDelete,
}

// ValidateHost checks a KubexmHost by itself.
func ValidateHost(h *infrav1.KubexmHost) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if len(h.Name) > 63 || h.Name == "localhost" {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), h.Name,
			"becomes the host's and its Node's name: use at most 63 characters, and not localhost"))
	}
	seen := asPlanned(h)
	// The name is metadata's, which is checked above, and the role is the Machine's to say.
	seen.Name, seen.Role = "host", spec.RoleWorker
	errs = append(errs, seen.Validate(path)...)
	errs = append(errs, validateCapacity(h.Spec.Capacity, path.Child("capacity"))...)
	errs = append(errs, h.Spec.BMC.Validate(path.Child("bmc"))...)
	return append(errs, h.Spec.Access.Validate(path.Child("access"))...)
}

// ValidateHostUpdate refuses to hand a host from one Machine to another, to move a Node to another address, and to lead anyone who
// works on a host that is in use to another machine or with other credentials.
func ValidateHostUpdate(old, updated *infrav1.KubexmHost) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	none := infrav1.MachineReference{}
	claim, claims := old.Spec.ClaimRef, updated.Spec.ClaimRef
	if claim == none {
		return nil
	}
	if claims != none && !claims.Names(claim) {
		errs = append(errs, field.Forbidden(path.Child("claimRef"), fmt.Sprintf(
			"the KubexmMachine %s of the Cluster %s has this host: delete its Machine, and the host is reset and released", claim.Name, claim.ClusterName)))
	}
	before, after := asPlanned(old), asPlanned(updated)
	if before.NodeAddress() != after.NodeAddress() {
		errs = append(errs, field.Invalid(path, after.NodeAddress(), fmt.Sprintf(
			"the address of a host that a Machine has is its Node's, and cannot be changed: set it back to %s", before.NodeAddress())))
	}
	// Anyone who comes to the host brings the cluster's keys, and may bring passwords.
	if annotations.HasPaused(updated) {
		return errs
	}
	was, is := &old.Spec.Access, &updated.Spec.Access
	for _, f := range []struct {
		path    *field.Path
		changed bool
	}{
		{path.Child("address"), old.Spec.Address != updated.Spec.Address},
		{path.Child("access", "user"), was.User != is.User},
		{path.Child("access", "port"), cmp.Or(was.Port, 22) != cmp.Or(is.Port, 22)},
		{path.Child("access", "hostKeys"), !equality.Semantic.DeepEqual(was.HostKeys, is.HostKeys)},
		{path.Child("access", "credentials"), was.Credentials != is.Credentials},
		{path.Child("bmc"), old.Spec.BMC != updated.Spec.BMC},
		{path.Child("access", "proxyJump"), !equality.Semantic.DeepEqual(was.ProxyJump, is.ProxyJump)},
	} {
		if f.changed {
			errs = append(errs, field.Forbidden(f.path, fmt.Sprintf(
				"the %s %s has this host, and what leads to it cannot be changed: where the host was re-keyed or moved, annotate the KubexmHost with %s, "+
					"change it, and remove the annotation", claim.KindOrDefault(), claim.Name, clusterv1.PausedAnnotation)))
		}
	}
	return errs
}

// ValidateHostDelete refuses to delete a host that a Machine has, except where clusterctl has moved it elsewhere.
func ValidateHostDelete(h *infrav1.KubexmHost) field.ErrorList {
	if _, moved := h.Annotations[clusterctlv1.DeleteForMoveAnnotation]; moved || h.Spec.ClaimRef == (infrav1.MachineReference{}) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "claimRef"), fmt.Sprintf(
		"the KubexmMachine %s of the Cluster %s has this host: delete its Machine first, and the host is reset and released",
		h.Spec.ClaimRef.Name, h.Spec.ClaimRef.ClusterName))}
}

// asPlanned is the host as planners see it.
func asPlanned(h *infrav1.KubexmHost) *spec.Host {
	return &spec.Host{Name: h.Name, Address: h.Spec.Address, InternalAddresses: h.Spec.InternalAddresses, Arch: h.Spec.Arch}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/admission"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmclusterconfig,mutating=true,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmclusterconfigs,versions=v1beta1,name=default.kubexmclusterconfig.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubexmclusterconfig,mutating=false,failurePolicy=fail,groups=bootstrap.cluster.x-k8s.io,resources=kubexmclusterconfigs,versions=v1beta1,name=validation.kubexmclusterconfig.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

var clusterConfig = admission.Kind[*bootstrapv1.KubexmClusterConfig]{
	GroupKind:      bootstrapv1.GroupVersion.WithKind("KubexmClusterConfig").GroupKind(),
	Spec:           func(c *bootstrapv1.KubexmClusterConfig) any { return c.Spec },
	Default:        DefaultClusterConfig,
	Validate:       ValidateClusterConfig,
	ValidateUpdate: ValidateClusterConfigUpdate,
}

// DefaultClusterConfig writes the versions as Cluster API compares them, with a v, and who runs etcd when the object is created: hosts
// could not follow another default. Other defaults are not written.
func DefaultClusterConfig(c *bootstrapv1.KubexmClusterConfig) {
	for _, version := range []*string{&c.Spec.Version, &c.Spec.APIServerVersion} {
		if *version != "" && !strings.HasPrefix(*version, "v") {
			*version = "v" + *version
		}
	}
	if c.UID == "" { // it is created now
		shared := c.Spec.Cluster.DeepCopy()
		shared.Default()
		c.Spec.Cluster.Etcd.Type = shared.Etcd.Type
	}
}

// ValidateClusterConfig checks a KubexmClusterConfig by itself. What hosts share is checked as a KubexmControlPlane's spec.cluster is.
func ValidateClusterConfig(c *bootstrapv1.KubexmClusterConfig) field.ErrorList {
	path := field.NewPath("spec")
	errs := spec.ValidateVersion(c.Spec.Version, path.Child("version"))
	if has := c.Spec.APIServerVersion; has != "" {
		errs = append(errs, spec.ValidateVersion(has, path.Child("apiServerVersion"))...)
	}
	endpoint := path.Child("controlPlaneEndpoint")
	if at := c.Spec.ControlPlaneEndpoint; at.Host != "" {
		if _, err := netip.ParseAddr(at.Host); err != nil && len(validation.IsDNS1123Subdomain(at.Host)) > 0 {
			errs = append(errs, field.Invalid(endpoint.Child("host"), at.Host, "use the address or the DNS name at which the API server is reached"))
		}
	}
	if port := c.Spec.ControlPlaneEndpoint.Port; port < 0 || port > 65535 {
		errs = append(errs, field.Invalid(endpoint.Child("port"), port, "use the port of the API server, 1 to 65535"))
	}
	shared := c.Spec.Cluster.DeepCopy()
	if !writtenByControlPlane(c) && shared.ControlPlaneEndpoint.Port != 0 {
		errs = append(errs, field.Forbidden(path.Child("cluster", "controlPlaneEndpoint", "port"), fmt.Sprintf("the port is %s: remove it", endpoint.Child("port"))))
	}
	switch at := c.Spec.ControlPlaneEndpoint; {
	case !writtenByControlPlane(c):
		with := c.Spec.Shared(&clusterv1.Cluster{})
		shared = &with
	case shared.ControlPlaneEndpoint.Address == "":
		// The port and a name may be the Cluster's, and hosts say what is wrong with these.
		if _, err := netip.ParseAddr(at.Host); err == nil {
			shared.ControlPlaneEndpoint.Lay(at.Host, 0)
		}
	}
	shared.Default()
	errs = append(errs, shared.ValidateRules(path.Child("cluster"))...)
	return append(errs, validateMembers(c.Spec.Members, path.Child("members"))...)
}

func validateMembers(members []bootstrapv1.ClusterMember, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, configs := map[string]bool{}, map[string]bool{}
	for i, m := range members {
		at := path.Index(i)
		if names[m.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), m.Name))
		}
		names[m.Name] = true
		if len(validation.IsDNS1123Subdomain(m.Name)) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), m.Name, "use the host's name"))
		}
		if m.ConfigName != "" && configs[m.ConfigName] {
			errs = append(errs, field.Duplicate(at.Child("configName"), m.ConfigName))
		}
		configs[m.ConfigName] = true
		if _, err := netip.ParseAddr(m.Address); m.Address != "" && err != nil {
			errs = append(errs, field.Invalid(at.Child("address"), m.Address, "use the IP address at which other hosts reach the host"))
		}
		switch m.Role {
		case spec.RoleControlPlane, spec.RoleEtcd, spec.RoleLoadBalancer:
		default:
			known := []spec.Role{spec.RoleControlPlane, spec.RoleEtcd, spec.RoleLoadBalancer}
			errs = append(errs, field.NotSupported(at.Child("role"), m.Role, known))
		}
	}
	return errs
}

// ValidateClusterConfigUpdate refuses the changes that a running cluster cannot follow. Whether a KubexmControlPlane's cluster runs
// already is known of that alone, and its webhook has seen the change before it is written here.
func ValidateClusterConfigUpdate(old, updated *bootstrapv1.KubexmClusterConfig) field.ErrorList {
	path := field.NewPath("spec", "cluster")
	controlPlanes := int32(0)
	for i := range old.Spec.Members {
		if m := &old.Spec.Members[i]; m.Role == spec.RoleControlPlane && m.Stays() {
			controlPlanes++
		}
	}
	errs := spec.ValidateUpdate(&old.Spec.Cluster, &updated.Spec.Cluster, max(controlPlanes, 1), path)
	if !writtenByControlPlane(updated) {
		errs = append(errs, spec.ValidateSharedUpdate(&old.Spec.Cluster, &updated.Spec.Cluster, path)...)
	}
	return errs
}

// writtenByControlPlane reports whether a KubexmControlPlane writes the object, and no user.
func writtenByControlPlane(c *bootstrapv1.KubexmClusterConfig) bool {
	return slices.ContainsFunc(c.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == bootstrapv1.ClusterConfigOwner && f.Operation == metav1.ManagedFieldsOperationApply
	})
}

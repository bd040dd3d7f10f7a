// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
)

// Target is all that a planner is told about what one host must be.
type Target struct {
	// clusterName is the cluster's name, a DNS label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// kubernetesVersion is the host's version of Kubernetes, such as v1.36.3.
	// +required
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=64
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// cluster is what all hosts share.
	// +required
	Cluster Cluster `json:"cluster,omitempty,omitzero"`

	// node is what is this host's own.
	// +optional
	Node Node `json:"node,omitempty,omitzero"`

	// host is the host.
	// +required
	Host Host `json:"host,omitempty,omitzero"`
}

// Default fills what was left out.
func (t *Target) Default() {
	t.Cluster.Default()
	t.Node.Default()
}

// Validate checks a target that has its defaults.
func (t *Target) Validate(path *field.Path) field.ErrorList {
	errs := ValidateClusterName(t.ClusterName, path.Child("clusterName"))
	errs = append(errs, ValidateVersion(t.KubernetesVersion, path.Child("kubernetesVersion"))...)
	errs = append(errs, t.Cluster.Validate(path.Child("cluster"))...)
	errs = append(errs, t.Node.Validate(path.Child("node"))...)
	errs = append(errs, t.Host.Validate(path.Child("host"))...)
	return append(errs, t.Cluster.validateHostOutside(&t.Host, path.Child("host"))...)
}

// ValidateClusterName checks a cluster's name, which becomes a part of host and file names: a DNS label.
func ValidateClusterName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "give the cluster a name, such as prod")}
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return field.ErrorList{field.Invalid(path, name, "use 1 to 63 lower-case letters, digits and '-', beginning and ending with a letter or digit")}
	}
	return nil
}

// ValidateVersion checks the form of a version of Kubernetes. Whether there are artifacts for it is for the catalogue to say.
func ValidateVersion(kubernetes string, path *field.Path) field.ErrorList {
	if kubernetes == "" {
		return field.ErrorList{field.Required(path, "give the version of Kubernetes, such as v1.36.3")}
	}
	if _, err := version.ParseSemantic(kubernetes); err != nil || !strings.HasPrefix(kubernetes, "v") || strings.Contains(kubernetes, "+") {
		return field.ErrorList{field.Invalid(path, kubernetes, "write the whole version with a v and without build metadata, such as v1.36.3")}
	}
	return nil
}

// Kubelet is the host's kubelet: the cluster's settings with the host's own over them.
func (t *Target) Kubelet() Kubelet {
	own, merged := t.Node.Kubelet, t.Cluster.Kubernetes.Kubelet
	merged.MaxPods = cmp.Or(own.MaxPods, merged.MaxPods)
	merged.PodPidsLimit = cmp.Or(own.PodPidsLimit, merged.PodPidsLimit)
	merged.ExtraArgs = merge(merged.ExtraArgs, own.ExtraArgs, func(a Arg) string { return a.Name })
	return merged
}

// System is what the host's operating system must be: the cluster's settings with the host's own over them.
func (t *Target) System() System {
	own, merged := t.Node.System, t.Cluster.System
	merged.Packages.Debs = merge(merged.Packages.Debs, own.Packages.Debs, itself)
	merged.Sysctls = merge(merged.Sysctls, own.Sysctls, func(s Sysctl) string { return sysctlKey(s.Name) })
	merged.Modules = merge(merged.Modules, own.Modules, itself)
	merged.EtcHosts = merge(merged.EtcHosts, own.EtcHosts, func(e HostEntry) string { return e.Address })
	merged.Swap = cmp.Or(own.Swap, merged.Swap)
	merged.Firewall = cmp.Or(own.Firewall, merged.Firewall)
	return merged
}

// merge is a new list of what shared has and own does not speak of, then own.
func merge[T any](shared, own []T, key func(T) string) []T {
	spoken := make(map[string]bool, len(own))
	for _, item := range own {
		spoken[key(item)] = true
	}
	kept := slices.DeleteFunc(slices.Clone(shared), func(item T) bool { return spoken[key(item)] })
	return append(kept, own...)
}

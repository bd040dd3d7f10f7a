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

// Target is all that a planner knows of what one host must be.
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

	// bootstrapMode says whether the host begins the control plane (or etcd on hosts of its own), or joins it. For other hosts it is
	// empty.
	// +optional
	BootstrapMode BootstrapMode `json:"bootstrapMode,omitempty"`

	// members are the hosts that the control plane, etcd and the load balancers consist of at present, this one included:
	// load balancers and etcd's membership follow it. If unset, the host is the only one.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Members []Member `json:"members,omitempty"`

	// leaving are the hosts whose etcd members are to be removed, because the hosts go. No member is removed that is not named
	// here, whatever members says.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Leaving []Member `json:"leaving,omitempty"`
}

// Default fills what was left out.
func (t *Target) Default() {
	t.Cluster.Default()
	t.Node.Default()
	if t.BootstrapMode == "" && (t.Host.Role == RoleControlPlane || t.Host.Role == RoleEtcd) {
		t.BootstrapMode = BootstrapInit
	}
	if self := (Member{Name: t.Host.Name, Role: t.Host.Role, Address: t.Host.NodeAddress()}); t.Host.Role != RoleWorker &&
		!slices.ContainsFunc(t.Members, func(m Member) bool { return m.Name == self.Name }) {
		t.Members = append(slices.Clip(t.Members), self)
	}
}

// MembersWith are the members with a role, by their names.
func (t *Target) MembersWith(role Role) []Member {
	var with []Member
	for _, m := range t.Members {
		if m.Role == role {
			with = append(with, m)
		}
	}
	slices.SortFunc(with, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return with
}

// EtcdMembers are the hosts that run an etcd of this cluster's own, by their names; none where etcd is external.
func (t *Target) EtcdMembers() []Member {
	switch {
	case t.Cluster.Etcd.IsExternal():
		return nil
	case t.Cluster.Etcd.IsStacked():
		return t.MembersWith(RoleControlPlane)
	}
	return t.MembersWith(RoleEtcd)
}

// HasEtcdMember reports whether the host is to have a member of etcd.
func (t *Target) HasEtcdMember() bool { return t.Cluster.RunsEtcd(t.Host.Role) }

// RunsEtcd reports whether hosts of a role have a member of etcd.
func (c *Cluster) RunsEtcd(role Role) bool {
	return role == RoleEtcd && !c.Etcd.IsExternal() || role == RoleControlPlane && c.Etcd.IsStacked()
}

// MayHave reports whether hosts of a role may have a component that can be restarted. Whether they do is for what fills its slot to say.
func (c *Cluster) MayHave(name ComponentName, role Role) bool {
	switch name {
	case ComponentRuntime, ComponentKubelet, ComponentProxy:
		return role.IsNode()
	case ComponentEtcd:
		return c.RunsEtcd(role)
	case ComponentLoadBalancer:
		return role == RoleLoadBalancer
	case ComponentAPIServer, ComponentControllerManager, ComponentScheduler:
	}
	return role == RoleControlPlane
}

// MayHaveCertificate reports whether hosts of a role may have a certificate that can be renewed, as MayHave does of components.
func (c *Cluster) MayHaveCertificate(name CertificateName, role Role) bool {
	switch name {
	case "etcd-admin", "etcd-member":
		return c.RunsEtcd(role)
	case "kube-proxy", "kubelet", "kubelet-client":
		return role.IsNode()
	}
	return role == RoleControlPlane
}

// NodeAddresses are the addresses that the Node has in the cluster, of the primary family first. In a dual stack cluster the
// second is the host's own first address of the other family, or found where none was declared, in one of the hosts' networks; it is
// left out if there is none.
func (t *Target) NodeAddresses(found string) []string {
	addresses := []string{t.Host.NodeAddress()}
	if !t.Cluster.Network.IsDualStack() {
		return addresses
	}
	family := t.Cluster.Network.PrimaryFamily().other()
	for _, second := range append(t.Host.Addresses(), found) {
		if FamilyOf(second) == family && t.Cluster.Network.HasHost(second) {
			return append(addresses, second)
		}
	}
	return addresses
}

// Validate checks a target that has its defaults.
func (t *Target) Validate(path *field.Path) field.ErrorList {
	errs := withBounds("Cluster", &t.Cluster, path.Child("cluster"), t.ValidateRules(path))
	return withBounds("Node", &t.Node, path.Child("node"), errs)
}

// ValidateRules checks what schemas cannot say. It is enough for a target of objects that an API server has validated by theirs.
func (t *Target) ValidateRules(path *field.Path) field.ErrorList {
	errs := ValidateClusterName(t.ClusterName, path.Child("clusterName"))
	errs = append(errs, ValidateVersion(t.KubernetesVersion, path.Child("kubernetesVersion"))...)
	errs = append(errs, t.Cluster.ValidateRules(path.Child("cluster"))...)
	errs = append(errs, t.Node.ValidateRules(path.Child("node"))...)
	errs = append(errs, t.Host.Validate(path.Child("host"))...)
	errs = append(errs, t.Cluster.validateHostOutside(&t.Host, path.Child("host"))...)
	errs = append(errs, t.Cluster.validateHostFamily(&t.Host, path.Child("host"))...)
	return append(errs, t.Cluster.validateHostNetwork(&t.Host, path.Child("host"))...)
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
	merged.Packages.Debs = merge(merged.Packages.Debs, own.Packages.Debs, packageName)
	merged.Packages.RPMs = merge(merged.Packages.RPMs, own.Packages.RPMs, packageName)
	merged.Sysctls = merge(merged.Sysctls, own.Sysctls, func(s Sysctl) string { return sysctlKey(s.Name) })
	merged.Modules = merge(merged.Modules, own.Modules, itself)
	merged.EtcHosts = merge(merged.EtcHosts, own.EtcHosts, func(e HostEntry) string { return e.Address })
	merged.IgnorePreflightErrors = merge(merged.IgnorePreflightErrors, own.IgnorePreflightErrors, itself)
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

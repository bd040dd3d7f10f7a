// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Policy is what becomes of something that a host came with.
//
// +kubebuilder:validation:Enum=Off;Keep
type Policy string

const (
	// PolicyOff turns it off; a reset turns it on again.
	PolicyOff Policy = "Off"
	// PolicyKeep leaves it as it is.
	PolicyKeep Policy = "Keep"
)

// System is what the operating system of a host is made to be, of all hosts in Cluster or of one host in Node.
// A host's own lists come in addition to the cluster's; where both speak of the same thing, the host's counts.
//
// +kubebuilder:validation:MinProperties=1
type System struct {
	// packages are installed from the bundle where it has them, else from the host's package repositories.
	// +optional
	Packages Packages `json:"packages,omitempty,omitzero"`

	// sysctls are kernel parameters to set, beside those that Kubernetes needs.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Sysctls []Sysctl `json:"sysctls,omitempty"`

	// modules are kernel modules to load, beside those that Kubernetes needs.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Modules []string `json:"modules,omitempty"`

	// swap is what becomes of swap devices and files. If unset, Off for a cluster and the cluster's for a host.
	// With Keep the kubelet is told to run beside swap.
	// +optional
	Swap Policy `json:"swap,omitempty"`

	// firewall is what becomes of firewalld or ufw where one of them is active. If unset, Open for a cluster and the cluster's for
	// a host. With Open the ports of the host's role, and those that pods send and get packets by, are opened in it under the name
	// kubexm; nothing else of it is changed, and a reset closes them. With Keep they must be open: a host's preflight names them.
	// Off turns it off. Rules that neither of the two manages are never changed.
	// +optional
	Firewall FirewallPolicy `json:"firewall,omitempty"`

	// etcHosts are further lines of /etc/hosts.
	// +optional
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	EtcHosts []HostEntry `json:"etcHosts,omitempty"`

	// ignorePreflightErrors are preflight checks whose errors become warnings, so that they stop nothing: Hostname (the host's
	// own name leads to itself alone), Time (no time synchronization runs), Resolv (no name server that pods can reach), Firewall
	// (rules of the host's own refuse what they do not name) and SELinux (it is enforcing: its policies are yours to bring). What a
	// cluster cannot do without is not to be ignored, such as clocks that differ.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	IgnorePreflightErrors []PreflightCheck `json:"ignorePreflightErrors,omitempty"`
}

// PreflightCheck is a check of preflight whose errors may be ignored.
//
// +kubebuilder:validation:Enum=Hostname;Time;Resolv;Firewall;SELinux
type PreflightCheck string

// Checks whose errors may be ignored.
const (
	CheckHostname PreflightCheck = "Hostname"
	CheckTime     PreflightCheck = "Time"
	CheckResolv   PreflightCheck = "Resolv"
	CheckFirewall PreflightCheck = "Firewall"
	CheckSELinux  PreflightCheck = "SELinux"
)

// Packages are names of operating system packages, by kind. A host takes those of its kind, and leaves the others to other hosts.
//
// +kubebuilder:validation:MinProperties=1
type Packages struct {
	// debs are installed on Debian and its relatives, each as a name or name=version.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=256
	Debs []string `json:"debs,omitempty"`

	// rpms are installed on Red Hat Enterprise Linux and its relatives, each as a name or name=version-release.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=256
	RPMs []string `json:"rpms,omitempty"`
}

// Sysctl is one kernel parameter.
type Sysctl struct {
	// name is the parameter's name with dots (net.core.somaxconn) or slashes (net/ipv4/conf/eth0.1/rp_filter).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// value is the parameter's value, in one line.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// setDefaults is for a Cluster's System alone: what a Node leaves out is its Cluster's.
func (s *System) setDefaults() {
	defaultTo(&s.Swap, PolicyOff)
	defaultTo(&s.Firewall, FirewallOpen)
}

var (
	// See deb-control(5), Package, and deb-version(7).
	debPackage = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?(=[A-Za-z0-9][A-Za-z0-9.+:~-]*)?$`)
	// dnf takes no "=" and no blanks in a name. A version without its release would never be that of a package.
	rpmPackage = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9+._-]+(=[A-Za-z0-9.+~^_]+-[A-Za-z0-9.+~^_]+)?$`)
	moduleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
)

func (s *System) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	debs, rpms, modules := path.Child("packages", "debs"), path.Child("packages", "rpms"), path.Child("modules")
	for i, name := range s.Packages.Debs {
		if !debPackage.MatchString(name) {
			errs = append(errs, field.Invalid(debs.Index(i), name, "use a package's name, or name=version, such as nfs-common"))
		}
	}
	errs = append(errs, unique(debs, s.Packages.Debs, packageName)...)
	for i, name := range s.Packages.RPMs {
		if !rpmPackage.MatchString(name) {
			errs = append(errs, field.Invalid(rpms.Index(i), name, "use a package's name, or name=version-release, such as nfs-utils"))
		}
	}
	errs = append(errs, unique(rpms, s.Packages.RPMs, packageName)...)
	errs = append(errs, validateSysctls(path.Child("sysctls"), s.Sysctls)...)
	for i, name := range s.Modules {
		if !moduleName.MatchString(name) {
			errs = append(errs, field.Invalid(modules.Index(i), name, "use a kernel module's name, such as nf_conntrack"))
		}
	}
	// To modprobe, '-' and '_' are one.
	errs = append(errs, unique(path.Child("ignorePreflightErrors"), s.IgnorePreflightErrors, itself)...)
	errs = append(errs, unique(modules, s.Modules, func(name string) string { return strings.ReplaceAll(name, "-", "_") })...)
	return append(errs, validateHostEntries(path.Child("etcHosts"), s.EtcHosts)...)
}

// packageName is a package's name without its version.
func packageName(p string) string {
	name, _, _ := strings.Cut(p, "=")
	return name
}

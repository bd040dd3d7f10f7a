// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Role is what a host is for.
//
// +kubebuilder:validation:Enum=ControlPlane;Worker;Etcd;LoadBalancer
type Role string

const (
	// RoleControlPlane hosts run the API server, the controllers and, where etcd has no hosts of its own, etcd.
	RoleControlPlane Role = "ControlPlane"
	// RoleWorker hosts run pods.
	RoleWorker Role = "Worker"
	// RoleEtcd hosts run etcd and nothing else.
	RoleEtcd Role = "Etcd"
	// RoleLoadBalancer hosts carry requests to the API servers and do nothing else.
	RoleLoadBalancer Role = "LoadBalancer"
)

// IsNode reports whether a host with this role becomes a Node.
func (r Role) IsNode() bool { return r == RoleControlPlane || r == RoleWorker }

// Arch is a host's processor architecture, as Go names it.
//
// +kubebuilder:validation:Enum=amd64;arm64
type Arch string

const (
	// ArchAMD64 is x86_64.
	ArchAMD64 Arch = "amd64"
	// ArchARM64 is aarch64.
	ArchARM64 Arch = "arm64"
)

// Host is one host as planners see it. How it is reached over SSH is not here.
type Host struct {
	// name becomes the host's name and its Node's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// role is what the host is for.
	// +required
	Role Role `json:"role,omitempty"`

	// address is the address, of either family, at which the host is reached from outside of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`

	// internalAddresses are the addresses at which the cluster's hosts reach this one, the Node's first: one of the cluster's
	// primary family. In a dual stack cluster the first of the other family is the Node's second. If unset, address.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=45
	InternalAddresses []string `json:"internalAddresses,omitempty"`

	// arch is the host's processor architecture. If unset, what the host itself says.
	// +optional
	Arch Arch `json:"arch,omitempty"`

	// providerID is what the kubelet registers the Node with, so that Cluster API finds it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`
}

// NodeAddress is the address that the Node has in the cluster: the first internal one, or Address where there is none. That of a
// load balancer host is the first of IPv4: hosts agree on a virtual address by addresses of its family.
func (h *Host) NodeAddress() string {
	for _, address := range h.InternalAddresses {
		if h.Role != RoleLoadBalancer || FamilyOf(address) == IPv4 {
			return address
		}
	}
	return h.Address
}

// Addresses are all of the host's addresses, the Node's first, each once.
func (h *Host) Addresses() []string {
	var all []string
	for _, address := range append(slices.Clone(h.InternalAddresses), h.Address) {
		if address != "" && !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

// Validate checks one host by itself.
func (h *Host) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if h.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "give the host a name, such as node1"))
	} else if !isDomain(h.Name) || len(h.Name) > 63 || h.Name == "localhost" {
		errs = append(errs, field.Invalid(path.Child("name"), h.Name,
			"use at most 63 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit, and not localhost"))
	}
	errs = append(errs, oneOf(path.Child("role"), h.Role, RoleControlPlane, RoleWorker, RoleEtcd, RoleLoadBalancer)...)
	if h.Arch != "" {
		errs = append(errs, oneOf(path.Child("arch"), h.Arch, ArchAMD64, ArchARM64)...)
	}
	if h.Address == "" {
		errs = append(errs, field.Required(path.Child("address"), "give the address at which the host is reached, such as 172.16.0.2"))
	} else {
		errs = append(errs, validateAddress(path.Child("address"), h.Address)...)
	}
	internal := path.Child("internalAddresses")
	for i, address := range h.InternalAddresses {
		errs = append(errs, validateAddress(internal.Index(i), address)...)
	}
	return append(errs, unique(internal, h.InternalAddresses, itself)...)
}

// ValidateHosts checks all hosts of a cluster that has its defaults: each by itself, that no two share a name or an
// address, and that none is in the networks of pods and services.
func ValidateHosts(hosts []Host, cluster *Cluster, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	owner := map[string]int{}
	for i := range hosts {
		at := path.Index(i)
		errs = append(errs, hosts[i].Validate(at)...)
		errs = append(errs, cluster.validateHostOutside(&hosts[i], at)...)
		errs = append(errs, cluster.validateHostFamily(&hosts[i], at)...)
		errs = append(errs, cluster.validateHostNetwork(&hosts[i], at)...)
		for _, address := range hosts[i].Addresses() {
			if len(validateAddress(at, address)) > 0 {
				continue // refused by itself
			}
			if first, found := owner[address]; found {
				errs = append(errs, duplicate(hosts[i].pathOf(address, at), address, fmt.Sprintf(
					"is an address of %s (%s) already: give each host addresses of its own", path.Index(first), hosts[first].Name)))
				continue
			}
			owner[address] = i
		}
	}
	return append(errs, uniqueNames(hosts, path)...)
}

func uniqueNames(hosts []Host, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	first := map[string]int{}
	for i, host := range hosts {
		if j, found := first[host.Name]; found && host.Name != "" {
			errs = append(errs, duplicate(path.Index(i).Child("name"), host.Name, fmt.Sprintf("is the name of %s already: rename one of them", path.Index(j))))
			continue
		}
		first[host.Name] = i
	}
	return errs
}

// validateHostOutside refuses a host in the networks of pods and services.
func (c *Cluster) validateHostOutside(host *Host, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, address := range host.Addresses() {
		errs = append(errs, c.validateOutside(host.pathOf(address, path), address)...)
	}
	return errs
}

// validateHostFamily wants the address by which the others reach a host to be of the primary family: the API server's and the first
// service network's are of one family. A load balancer host's is of IPv4, as the virtual address is. An etcd host may have IPv4 alone, and
// IPv6 alone where that is declared and the cluster has it.
func (c *Cluster) validateHostFamily(host *Host, path *field.Path) field.ErrorList {
	address, wanted, of := host.NodeAddress(), c.Network.PrimaryFamily(), "the cluster's first networks are"
	if host.Role == RoleLoadBalancer {
		wanted, of = IPv4, "the load balancers' virtual address is"
	}
	family := FamilyOf(address)
	switch {
	case family == "" || family == wanted:
		return nil
	case host.Role == RoleEtcd && (FamilyOf(host.Address) == IPv4 || len(c.Network.Usable(host.InternalAddresses)) > 0):
		return nil
	case host.Role == RoleLoadBalancer || len(host.InternalAddresses) == 0:
		return field.ErrorList{field.Required(path.Child("internalAddresses"), fmt.Sprintf(
			"%s of %s: give the host's %s address first", of, wanted, wanted))}
	}
	return field.ErrorList{field.Invalid(path.Child("internalAddresses").Index(0), address, fmt.Sprintf(
		"is of %s, and %s of %s: put an address of %s first", family, of, wanted, wanted))}
}

// validateHostNetwork wants the address by which the others reach a host to be in one of the networks that are declared for that.
func (c *Cluster) validateHostNetwork(host *Host, path *field.Path) field.ErrorList {
	address := host.NodeAddress()
	if FamilyOf(address) == "" || c.Network.HasHost(address) { // what is no address is refused by itself
		return nil
	}
	of := fmt.Sprintf("is in none of the networks in which hosts reach each other (network.hostCIDRs: %s)", strings.Join(c.Network.HostCIDRs, ", "))
	if len(c.Network.Usable(host.InternalAddresses)) > 0 {
		return field.ErrorList{field.Invalid(host.pathOf(address, path), address, of+": put one that is first")}
	}
	return field.ErrorList{field.Invalid(host.pathOf(address, path), address,
		of+": give the host an internal address that is, or add a network to the list")}
}

// pathOf is the field that holds one of the host's addresses.
func (h *Host) pathOf(address string, path *field.Path) *field.Path {
	if address == h.Address {
		return path.Child("address")
	}
	return path.Child("internalAddresses").Index(slices.Index(h.InternalAddresses, address))
}

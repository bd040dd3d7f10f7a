// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NetworkPlugin is what connects pods.
//
// +kubebuilder:validation:Enum=flannel
type NetworkPlugin string

// NetworkFlannel connects pods by flannel.
const NetworkFlannel NetworkPlugin = "flannel"

// Network is how pods and services are addressed and connected.
//
// +kubebuilder:validation:MinProperties=1
type Network struct {
	// plugin is what connects pods. If unset, flannel. It cannot be changed later.
	// +optional
	Plugin NetworkPlugin `json:"plugin,omitempty"`

	// podCIDRs is the IPv4 network that pods get addresses from. If unset, 10.233.64.0/18. It cannot be changed later.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	PodCIDRs []string `json:"podCIDRs,omitempty"`

	// serviceCIDRs is the IPv4 network that services get addresses from. If unset, 10.233.0.0/18. It cannot be changed later.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	ServiceCIDRs []string `json:"serviceCIDRs,omitempty"`

	// flannel sets the flannel plugin.
	// +optional
	Flannel Flannel `json:"flannel,omitempty,omitzero"`
}

// FlannelBackend is how flannel carries packets from host to host.
//
// +kubebuilder:validation:Enum=vxlan;host-gw
type FlannelBackend string

const (
	// FlannelVXLAN wraps packets in VXLAN (UDP port 8472).
	FlannelVXLAN FlannelBackend = "vxlan"
	// FlannelHostGW routes packets by the hosts' addresses; all hosts must be on one network segment.
	FlannelHostGW FlannelBackend = "host-gw"
)

// Flannel sets the flannel plugin.
//
// +kubebuilder:validation:MinProperties=1
type Flannel struct {
	// backend is how packets are carried from host to host. If unset, vxlan.
	// +optional
	Backend FlannelBackend `json:"backend,omitempty"`

	// mtu is the pods' maximum transmission unit in bytes. If unset, flannel finds it.
	// +optional
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=65535
	MTU int32 `json:"mtu,omitempty"`
}

// DNSAddress is the cluster IP of the cluster's DNS server: the tenth of the first service network. It is "" where that one
// is not valid.
func (n *Network) DNSAddress() string { return n.serviceAddress(10) }

// APIAddress is the cluster IP of the Service kubernetes: the first of the first service network.
func (n *Network) APIAddress() string { return n.serviceAddress(1) }

func (n *Network) serviceAddress(index int) string {
	if len(n.ServiceCIDRs) == 0 {
		return ""
	}
	prefix, err := netip.ParsePrefix(n.ServiceCIDRs[0])
	if err != nil {
		return ""
	}
	address := prefix.Masked().Addr()
	for range index {
		address = address.Next()
	}
	return address.String()
}

func (n *Network) setDefaults() {
	defaultTo(&n.Plugin, NetworkFlannel)
	if len(n.PodCIDRs) == 0 {
		n.PodCIDRs = []string{"10.233.64.0/18"}
	}
	if len(n.ServiceCIDRs) == 0 {
		n.ServiceCIDRs = []string{"10.233.0.0/18"}
	}
	if n.Plugin == NetworkFlannel {
		defaultTo(&n.Flannel.Backend, FlannelVXLAN)
	}
}

func (n *Network) validate(path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("plugin"), n.Plugin, NetworkFlannel)
	pods, services := path.Child("podCIDRs"), path.Child("serviceCIDRs")
	// kube-apiserver takes at most 2^20 service addresses, and kubeadm asks for ten; the tenth is CoreDNS.
	errs = append(errs, validateCIDRs(pods, n.PodCIDRs, 8, 28)...)
	errs = append(errs, validateCIDRs(services, n.ServiceCIDRs, 12, 28)...)
	for i, service := range n.ServiceCIDRs {
		for j, pod := range n.PodCIDRs {
			if overlap(service, pod) {
				errs = append(errs, field.Invalid(services.Index(i), service, fmt.Sprintf(
					"overlaps %s %s: use networks that have no address in common", pods.Index(j), pod)))
			}
		}
	}
	return append(errs, n.Flannel.validate(path.Child("flannel"))...)
}

func (f *Flannel) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, oneOf(path.Child("backend"), f.Backend, FlannelVXLAN, FlannelHostGW)...)
	if f.MTU != 0 {
		errs = append(errs, inRange(path.Child("mtu"), int64(f.MTU), 576, 65535)...)
	}
	return errs
}

func validateCIDRs(path *field.Path, cidrs []string, widest, narrowest int) field.ErrorList {
	if len(cidrs) == 0 {
		return field.ErrorList{field.Required(path, "give one IPv4 network, such as 10.233.64.0/18")}
	}
	var errs field.ErrorList
	for i, cidr := range cidrs {
		at := path.Index(i)
		prefix, err := netip.ParsePrefix(cidr)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at, cidr, "use an IPv4 network, such as 10.233.64.0/18"))
		case !prefix.Addr().Is4():
			errs = append(errs, field.Invalid(at, cidr, "IPv6 networks are not supported yet by this version of kubexm: remove it"))
		case prefix != prefix.Masked():
			errs = append(errs, field.Invalid(at, cidr, "has bits set behind its prefix: write "+prefix.Masked().String()))
		case prefix.Bits() < widest || prefix.Bits() > narrowest:
			errs = append(errs, field.Invalid(at, cidr, fmt.Sprintf("use a prefix length of %d to %d", widest, narrowest)))
		case isSpecial(prefix.Addr()):
			errs = append(errs, field.Invalid(at, cidr, "is loopback, link-local or multicast: use a private network, such as 10.233.64.0/18"))
		case i > 0:
			errs = append(errs, field.Invalid(at, cidr, "only one IPv4 network is possible: remove all but one"))
		}
	}
	return errs
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Encapsulation is when packets between pods of different hosts are wrapped.
//
// +kubebuilder:validation:Enum=Always;CrossSubnet;Never
type Encapsulation string

const (
	// EncapsulationAlways wraps all of them.
	EncapsulationAlways Encapsulation = "Always"
	// EncapsulationCrossSubnet wraps those between hosts of different networks; others go by the hosts' addresses.
	EncapsulationCrossSubnet Encapsulation = "CrossSubnet"
	// EncapsulationNever wraps none.
	EncapsulationNever Encapsulation = "Never"
)

// Calico sets the calico plugin.
//
// +kubebuilder:validation:MinProperties=1
type Calico struct {
	// ipipMode is when packets are wrapped in IP. If unset, Never, and Never alone is supported: IP in IP takes routes that a daemon
	// for BGP distributes, which the images have not.
	// +optional
	IPIPMode Encapsulation `json:"ipipMode,omitempty"`

	// vxlanMode is when packets are wrapped in VXLAN (UDP port 4789). If unset, Always. Never is not supported, because routes without
	// a tunnel take a daemon for BGP, too.
	// +optional
	VXLANMode Encapsulation `json:"vxlanMode,omitempty"`

	// vethMTU is the pods' maximum transmission unit in bytes. If unset, calico finds it: that of the hosts' interfaces, less what
	// VXLAN puts around a packet. Pods that run keep what they have.
	// +optional
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=65535
	VethMTU int32 `json:"vethMTU,omitempty"`

	// blockSize is the prefix length of the networks that hosts are given of the pods' one, as they need them. If unset, 26. It cannot
	// be changed later.
	// +optional
	// +kubebuilder:validation:Minimum=20
	// +kubebuilder:validation:Maximum=32
	BlockSize int32 `json:"blockSize,omitempty"`
}

func (c *Calico) setDefaults() {
	defaultTo(&c.IPIPMode, EncapsulationNever)
	defaultTo(&c.VXLANMode, EncapsulationAlways)
	defaultTo(&c.BlockSize, 26)
}

// ports are that of the tunnel, and where Felix is asked how it is.
func (c *Calico) ports() []Port {
	const when = "`network.plugin: Calico`"
	return []Port{
		{Number: 4789, Protocol: UDP, For: "calico's VXLAN", When: when},
		{Number: 9099, Protocol: TCP, For: "calico, asked how it is", When: when, Local: true},
	}
}

// fixed refuses other blocks: pods have addresses from those that there are.
func (c *Calico) fixed(before *Calico, path *field.Path, refuse refuser) {
	if was, is := before.BlockSize, c.BlockSize; was != is {
		refuse(path.Child("blockSize"), was, is)
	}
}

// The least and most of blockSize that calico's allocation of addresses takes of IPv4.
const largestBlock, smallestBlock = 20, 32

// validate checks it for the network n, which is at the path.
func (c *Calico) validate(network *field.Path, n *Network) field.ErrorList {
	var errs field.ErrorList
	path, pods := network.Child("calico"), network.Child("podCIDRs")
	mode := func(at *field.Path, is Encapsulation, refused map[Encapsulation]string) {
		if why, no := refused[is]; no {
			errs = append(errs, field.Invalid(at, string(is), why))
		}
	}
	const noBGP = "takes routes that are distributed by BGP, and the images have no daemon (BIRD) for it: "
	mode(path.Child("ipipMode"), c.IPIPMode, map[Encapsulation]string{
		EncapsulationAlways:      noBGP + "use Never, and vxlanMode",
		EncapsulationCrossSubnet: noBGP + "use Never, and vxlanMode",
	})
	mode(path.Child("vxlanMode"), c.VXLANMode, map[Encapsulation]string{EncapsulationNever: noBGP + "use Always or CrossSubnet"})
	blockSize := path.Child("blockSize")
	if prefix, err := netip.ParsePrefix(n.PodCIDR(IPv4)); err == nil && int(c.BlockSize) < prefix.Bits() {
		errs = append(errs, field.Invalid(blockSize, c.BlockSize, fmt.Sprintf(
			"a block does not fit into the pods' network %s: use %d to %d, or a larger network", prefix, max(largestBlock, prefix.Bits()), smallestBlock)))
	}
	if n.IsDualStack() {
		errs = append(errs, field.Invalid(pods.Index(1), n.PodCIDRs[1], "this version of kubexm has calico give pods IPv4 addresses alone: "+
			"remove the second network, here and of services, or use the plugin flannel"))
	}
	return errs
}

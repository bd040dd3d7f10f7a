// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"net"
	"net/netip"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ControlPlaneEndpoint is where the API server is reached, by every host and by users.
//
// +kubebuilder:validation:MinProperties=1
type ControlPlaneEndpoint struct {
	// domain is the API server's DNS name. It is written to every host's /etc/hosts with the address.
	// If unset, the address is used everywhere. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Domain string `json:"domain,omitempty"`

	// address is the IP address at which the API server is reached. If unset, that of the first control plane host.
	// It cannot be changed later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`

	// port is the API server's port. If unset, 6443. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// Host is the domain, or the address where there is no domain.
func (e ControlPlaneEndpoint) Host() string {
	if e.Domain != "" {
		return e.Domain
	}
	return e.Address
}

// HostPort is Host and port as kubeadm's controlPlaneEndpoint and URLs have them.
func (e ControlPlaneEndpoint) HostPort() string {
	return net.JoinHostPort(e.Host(), strconv.Itoa(int(e.Port)))
}

func (e *ControlPlaneEndpoint) setDefaults() {
	defaultTo(&e.Port, 6443)
}

// takenPorts are those that a control plane host's other components listen on.
var takenPorts = []int32{22, 2379, 2380, 2381, 10248, 10249, 10250, 10256, 10257, 10259}

func (e *ControlPlaneEndpoint) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e.Domain != "" {
		if _, err := netip.ParseAddr(e.Domain); err == nil {
			errs = append(errs, field.Invalid(path.Child("domain"), e.Domain, "this is an IP address: set it as "+path.Child("address").String()))
		} else if !isDomain(e.Domain) {
			errs = append(errs, field.Invalid(path.Child("domain"), e.Domain, "use a DNS name in lower case, such as api.prod.example"))
		}
	}
	if e.Address != "" {
		errs = append(errs, validateIPv4(path.Child("address"), e.Address)...)
	}
	errs = append(errs, inRange(path.Child("port"), int64(e.Port), 1, 65535)...)
	if slices.Contains(takenPorts, e.Port) {
		errs = append(errs, field.Invalid(path.Child("port"), e.Port, "another component of a control plane host listens on this port: use another, such as 6443"))
	}
	return errs
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DomainResolution is by what hosts find the address of the endpoint's domain.
//
// +kubebuilder:validation:Enum=HostsFile;ExternalDNS
type DomainResolution string

const (
	// DomainHostsFile writes it to each host's /etc/hosts.
	DomainHostsFile DomainResolution = "HostsFile"
	// DomainExternalDNS leaves it to the DNS servers that hosts use.
	DomainExternalDNS DomainResolution = "ExternalDNS"
)

// ControlPlaneEndpoint is where the API server is reached, by every host and by users.
//
// +kubebuilder:validation:MinProperties=1
type ControlPlaneEndpoint struct {
	// domain is the API server's DNS name. It is written to every host's /etc/hosts with the address; see domainResolution.
	// If unset, the address is used everywhere; with a load balancer of the type NodeLocal, api.kubexm.internal,
	// because each host has an address of its own for it. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Domain string `json:"domain,omitempty"`

	// domainResolution is by what hosts find the domain's address. If unset, HostsFile. ExternalDNS needs the domain, and no
	// address but a virtual one, and no load balancer of the type NodeLocal.
	// +optional
	DomainResolution DomainResolution `json:"domainResolution,omitempty"`

	// address is the IPv4 address at which the API server is reached: a load balancer's, or a virtual one. If unset, the first
	// that the first control plane host has. It cannot be changed later.
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

// defaultDomain is the endpoint's name where every host has an address of its own for it.
const defaultDomain = "api.kubexm.internal"

// Host is the domain, or the address where there is no domain.
func (e *ControlPlaneEndpoint) Host() string {
	if e.Domain != "" {
		return e.Domain
	}
	return e.Address
}

// HostPort is Host and port as kubeadm's controlPlaneEndpoint and URLs have them.
func (e *ControlPlaneEndpoint) HostPort() string {
	return net.JoinHostPort(e.Host(), strconv.Itoa(int(e.Port)))
}

// Lay lays an endpoint over it, as Cluster API knows one: host is an address or a name, and what is empty leaves e as it is.
func (e *ControlPlaneEndpoint) Lay(host string, port int32) {
	if port != 0 {
		e.Port = port
	}
	if _, err := netip.ParseAddr(host); err == nil {
		e.Address = host
	} else if host != "" {
		e.Domain = host
	}
}

func (e *ControlPlaneEndpoint) setDefaults(l *LoadBalancer) {
	defaultTo(&e.Port, 6443)
	defaultTo(&e.DomainResolution, DomainHostsFile)
	if l.IsLocal() {
		defaultTo(&e.Domain, defaultDomain)
	}
}

// takenPorts are those that a control plane host's other components listen on.
var takenPorts = []int32{22, 2112, 2379, 2380, 2381, 10242, 10243, 10248, 10249, 10250, 10256, 10257, 10259}

func (e *ControlPlaneEndpoint) validate(path *field.Path, l *LoadBalancer) field.ErrorList {
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
	errs = append(errs, e.validateDomainResolution(path, l)...)
	return append(errs, e.validateAddress(path, l)...)
}

func (e *ControlPlaneEndpoint) validateDomainResolution(path *field.Path, l *LoadBalancer) field.ErrorList {
	at := path.Child("domainResolution")
	var errs field.ErrorList
	if e.DomainResolution == DomainHostsFile && l.IsExternal() && e.Domain != "" && e.Address == "" {
		errs = append(errs, field.Required(path.Child("address"), fmt.Sprintf(
			"hosts find the load balancer's address for %s in their /etc/hosts: give it, or set %s to %s", e.Domain, at, DomainExternalDNS)))
	}
	if e.DomainResolution != DomainExternalDNS {
		return errs
	}
	if e.Domain == "" {
		errs = append(errs, field.Required(path.Child("domain"), fmt.Sprintf("%s is %s: give the name that your DNS servers know", at, DomainExternalDNS)))
	}
	if e.Address != "" && !l.IsVirtual() {
		errs = append(errs, field.Forbidden(path.Child("address"), fmt.Sprintf("%s is %s: your DNS servers say which address the domain has; remove it", at, DomainExternalDNS)))
	}
	if l.IsLocal() {
		errs = append(errs, field.Forbidden(at,
			"with a load balancer on each worker each host has an address of its own for the domain, which no DNS server can say: remove it"))
	}
	return errs
}

// validateAddress wants an address, or a name, where the load balancer does not say one by itself.
func (e *ControlPlaneEndpoint) validateAddress(path *field.Path, l *LoadBalancer) field.ErrorList {
	switch {
	case l.IsVirtual() && e.Address == "":
		return field.ErrorList{field.Required(path.Child("address"), "give the virtual address: one of the hosts' network that no host has")}
	case l.IsExternal() && e.Host() == "":
		return field.ErrorList{field.Required(path.Child("address"), "give the load balancer's address, or its domain")}
	}
	return nil
}

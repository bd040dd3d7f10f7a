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

// ExternalLoadBalancer is what carries requests to the API servers from outside of the cluster's Nodes.
//
// +kubebuilder:validation:Enum=kubexm-kh;kubexm-kn;external
type ExternalLoadBalancer string

const (
	// LoadBalancerKeepalivedHAProxy is keepalived and haproxy on hosts of their own.
	LoadBalancerKeepalivedHAProxy ExternalLoadBalancer = "kubexm-kh"
	// LoadBalancerKeepalivedNginx is keepalived and nginx on hosts of their own.
	LoadBalancerKeepalivedNginx ExternalLoadBalancer = "kubexm-kn"
	// LoadBalancerExternal is one that is there already.
	LoadBalancerExternal ExternalLoadBalancer = "external"
)

// InternalLoadBalancer is what carries requests to the API servers on the cluster's own Nodes.
//
// +kubebuilder:validation:Enum=haproxy;nginx;kube-vip
type InternalLoadBalancer string

const (
	// LoadBalancerHAProxy is an haproxy on each worker, as a static pod: the worker reaches the API servers through its own.
	LoadBalancerHAProxy InternalLoadBalancer = "haproxy"
	// LoadBalancerNginx is an nginx on each worker, as a static pod.
	LoadBalancerNginx InternalLoadBalancer = "nginx"
	// LoadBalancerKubeVIP is kube-vip on each control plane host, as a static pod: one of them has the address.
	LoadBalancerKubeVIP InternalLoadBalancer = "kube-vip"
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
	// external is the load balancer outside of the Nodes. With kubexm-kh and kubexm-kn, hosts says where it runs and address
	// is the virtual address that moves between these hosts; with external, address or domain is that of the load balancer.
	// It cannot be changed later.
	// +optional
	External ExternalLoadBalancer `json:"external,omitempty"`

	// internal is the load balancer on the Nodes. With haproxy and nginx, workers reach the API servers through one of their
	// own; with kube-vip, address is a virtual address that moves between the control plane's hosts. A control plane of more
	// than one host needs external or internal. It cannot be changed later.
	// +optional
	Internal InternalLoadBalancer `json:"internal,omitempty"`

	// hosts are hosts of the inventory that external load balancers (kubexm-kh, kubexm-kn) run on.
	// +optional
	Hosts Hosts `json:"hosts,omitempty,omitzero"`

	// domain is the API server's DNS name. It is written to every host's /etc/hosts with the address; see domainResolution.
	// If unset, the address is used everywhere; with the internal load balancers haproxy and nginx, api.kubexm.internal,
	// because each host has an address of its own for it. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Domain string `json:"domain,omitempty"`

	// domainResolution is by what hosts find the domain's address. If unset, HostsFile. ExternalDNS needs the domain, and no
	// address and no internal load balancer beside it.
	// +optional
	DomainResolution DomainResolution `json:"domainResolution,omitempty"`

	// address is the IP address at which the API server is reached: a load balancer's, or a virtual one. If unset, that of
	// the first control plane host. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`

	// port is the API server's port. If unset, 6443. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// keepalived sets how the virtual address moves between load balancer hosts.
	// +optional
	Keepalived Keepalived `json:"keepalived,omitempty,omitzero"`

	// kubeVIP sets the internal load balancer kube-vip.
	// +optional
	KubeVIP KubeVIP `json:"kubeVIP,omitempty,omitzero"`
}

// Keepalived sets how a virtual address moves between load balancer hosts (VRRP version 3, unicast).
//
// +kubebuilder:validation:MinProperties=1
type Keepalived struct {
	// interface is the network interface that has the virtual address. If unset, that of each host's default route.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Interface string `json:"interface,omitempty"`

	// virtualRouterID tells this virtual address from others in the same network segment. If unset, the last byte of the
	// address, or 255 where that is 0.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=255
	VirtualRouterID int32 `json:"virtualRouterID,omitempty"`
}

// KubeVIP sets the internal load balancer kube-vip.
//
// +kubebuilder:validation:MinProperties=1
type KubeVIP struct {
	// image is kube-vip's image, which hosts must be able to pull: no bundle has it. If unset, ghcr.io/kube-vip/kube-vip:v1.0.1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// interface is the network interface that has the virtual address. If unset, that of each host's default route.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	Interface string `json:"interface,omitempty"`
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

// HasLoadBalancerHosts reports whether load balancers run on hosts of their own.
func (e *ControlPlaneEndpoint) HasLoadBalancerHosts() bool {
	return e.External == LoadBalancerKeepalivedHAProxy || e.External == LoadBalancerKeepalivedNginx
}

// IsLocal reports whether each Node reaches the API servers through a load balancer of its own.
func (e *ControlPlaneEndpoint) IsLocal() bool {
	return e.Internal == LoadBalancerHAProxy || e.Internal == LoadBalancerNginx
}

// HasLoadBalancer reports whether the API is still reached when one of several API servers is gone.
func (e *ControlPlaneEndpoint) HasLoadBalancer() bool { return e.External != "" || e.Internal != "" }

func (e *ControlPlaneEndpoint) setDefaults() {
	defaultTo(&e.Port, 6443)
	defaultTo(&e.DomainResolution, DomainHostsFile)
	if e.IsLocal() {
		defaultTo(&e.Domain, defaultDomain)
	}
	if e.Internal == LoadBalancerKubeVIP {
		defaultTo(&e.KubeVIP.Image, "ghcr.io/kube-vip/kube-vip:v1.0.1")
	}
	if ip, err := netip.ParseAddr(e.Address); err == nil && e.HasLoadBalancerHosts() {
		bytes := ip.AsSlice()
		defaultTo(&e.Keepalived.VirtualRouterID, int32(bytes[len(bytes)-1]))
		defaultTo(&e.Keepalived.VirtualRouterID, 255)
	}
}

// takenPorts are those that a control plane host's other components listen on.
var takenPorts = []int32{22, 2379, 2380, 2381, 10242, 10243, 10248, 10249, 10250, 10256, 10257, 10259}

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
	errs = append(errs, e.Hosts.validate(path.Child("hosts"))...)
	errs = append(errs, e.validateDomainResolution(path)...)
	return append(errs, e.validateLoadBalancers(path)...)
}

func (e *ControlPlaneEndpoint) validateDomainResolution(path *field.Path) field.ErrorList {
	at := path.Child("domainResolution")
	errs := oneOf(at, e.DomainResolution, DomainHostsFile, DomainExternalDNS)
	if e.DomainResolution == DomainHostsFile && e.External == LoadBalancerExternal && e.Domain != "" && e.Address == "" {
		errs = append(errs, field.Required(path.Child("address"), fmt.Sprintf(
			"hosts find the load balancer's address for %s in their /etc/hosts: give it, or set %s to %s", e.Domain, at, DomainExternalDNS)))
	}
	if e.DomainResolution != DomainExternalDNS {
		return errs
	}
	if e.Domain == "" {
		errs = append(errs, field.Required(path.Child("domain"), fmt.Sprintf("%s is %s: give the name that your DNS servers know", at, DomainExternalDNS)))
	}
	if e.Address != "" && !e.HasLoadBalancerHosts() && e.Internal != LoadBalancerKubeVIP {
		errs = append(errs, field.Forbidden(path.Child("address"), fmt.Sprintf("%s is %s: your DNS servers say which address the domain has; remove it", at, DomainExternalDNS)))
	}
	if e.IsLocal() {
		errs = append(errs, field.Forbidden(at, fmt.Sprintf(
			"with the internal load balancer %s each host has an address of its own for the domain, which no DNS server can say: remove it", e.Internal)))
	}
	return errs
}

func (e *ControlPlaneEndpoint) validateLoadBalancers(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e.External != "" {
		errs = append(errs, oneOf(path.Child("external"), e.External, LoadBalancerKeepalivedHAProxy, LoadBalancerKeepalivedNginx, LoadBalancerExternal)...)
	}
	if e.Internal != "" {
		errs = append(errs, oneOf(path.Child("internal"), e.Internal, LoadBalancerHAProxy, LoadBalancerNginx, LoadBalancerKubeVIP)...)
	}
	virtual := e.HasLoadBalancerHosts() || e.Internal == LoadBalancerKubeVIP
	switch {
	case e.External != "" && e.Internal == LoadBalancerKubeVIP:
		errs = append(errs, field.Forbidden(path.Child("internal"), fmt.Sprintf(
			"kube-vip and the external load balancer %s would both have the address: remove one of them", e.External)))
	case virtual && e.Address == "":
		errs = append(errs, field.Required(path.Child("address"), "give the virtual address: one of the hosts' network that no host has"))
	case e.External == LoadBalancerExternal && e.Host() == "":
		errs = append(errs, field.Required(path.Child("address"), "give the load balancer's address, or its domain"))
	}
	switch {
	case e.HasLoadBalancerHosts() && e.Hosts.IsZero():
		errs = append(errs, field.Required(path.Child("hosts"), fmt.Sprintf("the load balancer %s runs on hosts of its own: name at least one, two for high availability", e.External)))
	case !e.HasLoadBalancerHosts() && !e.Hosts.IsZero():
		errs = append(errs, field.Forbidden(path.Child("hosts"), fmt.Sprintf(
			"only %s and %s run on hosts of their own: remove them, or set %s", LoadBalancerKeepalivedHAProxy, LoadBalancerKeepalivedNginx, path.Child("external"))))
	}
	if !e.HasLoadBalancerHosts() && e.Keepalived != (Keepalived{}) {
		errs = append(errs, field.Forbidden(path.Child("keepalived"), "no keepalived is installed: remove it"))
	}
	if e.Internal != LoadBalancerKubeVIP && e.KubeVIP != (KubeVIP{}) {
		errs = append(errs, field.Forbidden(path.Child("kubeVIP"), "no kube-vip is installed: remove it"))
	}
	return errs
}

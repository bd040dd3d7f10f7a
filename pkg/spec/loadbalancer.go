// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"net/netip"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// LoadBalancerType is what carries requests to the API servers of a control plane.
//
// +kubebuilder:validation:Enum=None;Infrastructure;External;KubeVIP;Keepalived;NodeLocal
type LoadBalancerType string

const (
	// LoadBalancerNone is none: the endpoint is the one control plane host.
	LoadBalancerNone LoadBalancerType = "None"
	// LoadBalancerInfrastructure is one that the infrastructure provider makes, whose address is the infrastructure cluster's.
	LoadBalancerInfrastructure LoadBalancerType = "Infrastructure"
	// LoadBalancerExternal is one that is there already.
	LoadBalancerExternal LoadBalancerType = "External"
	// LoadBalancerKubeVIP is kube-vip on each control plane host, as a static pod: one of them has the address.
	LoadBalancerKubeVIP LoadBalancerType = "KubeVIP"
	// LoadBalancerKeepalived is a proxy and keepalived on hosts of their own: one of them has the address.
	LoadBalancerKeepalived LoadBalancerType = "Keepalived"
	// LoadBalancerNodeLocal is a proxy on each worker, as a static pod: the worker reaches the API servers through its own.
	LoadBalancerNodeLocal LoadBalancerType = "NodeLocal"
)

// LoadBalancerProxy is what spreads connections over the API servers.
//
// +kubebuilder:validation:Enum=HAProxy;Nginx
type LoadBalancerProxy string

const (
	// LoadBalancerHAProxy is haproxy.
	LoadBalancerHAProxy LoadBalancerProxy = "HAProxy"
	// LoadBalancerNginx is nginx.
	LoadBalancerNginx LoadBalancerProxy = "Nginx"
)

// LoadBalancer is what carries requests to the API servers. A control plane of more than one host needs one.
//
// +union
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'Keepalived' ? has(self.keepalived) && has(self.keepalived.hosts) : !has(self.keepalived)",fieldPath=".keepalived",message="the type Keepalived needs keepalived.hosts, and no other type takes keepalived"
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'NodeLocal' || !has(self.nodeLocal)",fieldPath=".nodeLocal",message="only the type NodeLocal takes nodeLocal"
// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type == 'KubeVIP' || !has(self.kubeVIP)",fieldPath=".kubeVIP",message="only the type KubeVIP takes kubeVIP"
type LoadBalancer struct {
	// type is what carries the requests. With None, the endpoint is the address of the one control plane host. With Infrastructure, it is
	// what the infrastructure cluster says, and with External that of a load balancer that is there already: nothing is installed. With
	// KubeVIP and Keepalived, it is a virtual address, of the hosts' network, that no host has. With NodeLocal, workers reach the API
	// servers by a proxy of their own. If unset, None. None can be changed to another type while there is one control plane host.
	// +optional
	// +unionDiscriminator
	Type LoadBalancerType `json:"type,omitempty"`

	// keepalived is for the type Keepalived.
	// +optional
	Keepalived Keepalived `json:"keepalived,omitempty,omitzero"`

	// nodeLocal is for the type NodeLocal.
	// +optional
	NodeLocal NodeLocal `json:"nodeLocal,omitempty,omitzero"`

	// kubeVIP is for the type KubeVIP.
	// +optional
	KubeVIP KubeVIP `json:"kubeVIP,omitempty,omitzero"`
}

// Keepalived is a proxy on hosts of its own, and a virtual address that moves between them (VRRP version 3, unicast).
//
// +kubebuilder:validation:MinProperties=1
type Keepalived struct {
	// proxy is what spreads connections over the API servers. If unset, HAProxy. It cannot be changed later.
	// +optional
	Proxy LoadBalancerProxy `json:"proxy,omitempty"`

	// hosts are hosts of the inventory that run the load balancer and nothing else.
	// +optional
	Hosts Hosts `json:"hosts,omitempty,omitzero"`

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

// NodeLocal is a proxy on each worker.
//
// +kubebuilder:validation:MinProperties=1
type NodeLocal struct {
	// proxy is what spreads connections over the API servers. If unset, HAProxy. It cannot be changed later.
	// +optional
	Proxy LoadBalancerProxy `json:"proxy,omitempty"`
}

// KubeVIP is kube-vip on the control plane's hosts.
//
// +kubebuilder:validation:MinProperties=1
type KubeVIP struct {
	// image is kube-vip's image, which hosts must be able to pull. If unset, that of the bundle, which must have been made with the
	// optional component kube-vip.
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

// They are written to files as they are.
var (
	interfaceName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`)
	imageReference = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[A-Za-z0-9._-]+)+(:[A-Za-z0-9._-]+)?(@sha256:[0-9a-f]{64})?$`)
)

// IsPresent reports whether the API is still reached when one of several API servers is gone.
func (l *LoadBalancer) IsPresent() bool { return balancers[l.Type].balances }

// IsLocal reports whether each Node reaches the API servers through a load balancer of its own.
func (l *LoadBalancer) IsLocal() bool { return balancers[l.Type].local }

// IsExternal reports whether it is there already, as others have made it.
func (l *LoadBalancer) IsExternal() bool { return balancers[l.Type].users }

// OwnHosts are the hosts of its own that it runs on.
func (l *LoadBalancer) OwnHosts() Hosts { return l.Keepalived.Hosts }

// IsVirtual reports whether the endpoint's address moves between hosts of the cluster.
func (l *LoadBalancer) IsVirtual() bool { return balancers[l.Type].virtual }

// Proxy is what spreads connections on hosts of the cluster, "" if nothing does.
func (l *LoadBalancer) Proxy() LoadBalancerProxy {
	if proxy := balancers[l.Type].proxy; proxy != nil {
		return proxy(l)
	}
	return ""
}

// ports are those at which something of it listens on control plane hosts.
func (l *LoadBalancer) ports() []Port { return balancers.ports(l.Type, l) }

func (l *LoadBalancer) setDefaults(address string) {
	defaultTo(&l.Type, defaultBalancer)
	balancers.setDefaults(l.Type, l)
	if ip, err := netip.ParseAddr(address); err == nil && balancers[l.Type].apart {
		bytes := ip.AsSlice()
		defaultTo(&l.Keepalived.VirtualRouterID, int32(bytes[len(bytes)-1]))
		defaultTo(&l.Keepalived.VirtualRouterID, 255)
	}
}

func (l *LoadBalancer) validate(path *field.Path) field.ErrorList {
	return balancers.validate(l.Type, l, path)
}

func (l *LoadBalancer) validateKeepalived(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	path = path.Child("keepalived")
	if l.Keepalived.Hosts.IsZero() {
		errs = append(errs, field.Required(path.Child("hosts"),
			"this load balancer runs on hosts of its own: name at least one, two for high availability"))
	}
	errs = append(errs, l.Keepalived.Hosts.validate(path.Child("hosts"))...)
	return append(errs, validateInterface(path.Child("interface"), l.Keepalived.Interface)...)
}

func (l *LoadBalancer) validateKubeVIP(path *field.Path) field.ErrorList {
	path = path.Child("kubeVIP")
	errs := validateInterface(path.Child("interface"), l.KubeVIP.Interface)
	if image := l.KubeVIP.Image; image != "" && !imageReference.MatchString(image) {
		errs = append(errs, field.Invalid(path.Child("image"), image,
			"use an image's full reference, such as registry.example/kube-vip/kube-vip:v0.9.1"))
	}
	return errs
}

func validateInterface(path *field.Path, name string) field.ErrorList {
	if name == "" || interfaceName.MatchString(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "use the name of a network interface, such as eth0")}
}

// withoutNodeLocal refuses what is for a proxy on each Node, where that is not the type.
func (l *LoadBalancer) withoutNodeLocal(path *field.Path) field.ErrorList {
	if l.NodeLocal == (NodeLocal{}) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("nodeLocal"), fmt.Sprintf(
		"the type is %s: remove it, or set %s to NodeLocal", l.Type, path.Child("type")))}
}

// withoutKubeVIP refuses what is for kube-vip, where it is not the type.
func (l *LoadBalancer) withoutKubeVIP(path *field.Path) field.ErrorList {
	if l.KubeVIP == (KubeVIP{}) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("kubeVIP"), "no kube-vip is installed: remove it")}
}

// withoutKeepalived refuses what is for keepalived, where it is not the type.
func (l *LoadBalancer) withoutKeepalived(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	path = path.Child("keepalived")
	k := l.Keepalived
	if !k.Hosts.IsZero() {
		errs = append(errs, field.Forbidden(path.Child("hosts"),
			"only a load balancer of the type Keepalived runs on hosts of its own: remove them, or use this type"))
	}
	if k.Proxy != "" || k.Interface != "" || k.VirtualRouterID != 0 {
		errs = append(errs, field.Forbidden(path, "no keepalived is installed: remove it"))
	}
	return errs
}

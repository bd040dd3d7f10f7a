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
func (l *LoadBalancer) IsPresent() bool { return l.Type != "" && l.Type != LoadBalancerNone }

// IsLocal reports whether each Node reaches the API servers through a load balancer of its own.
func (l *LoadBalancer) IsLocal() bool { return l.Type == LoadBalancerNodeLocal }

// OwnHosts are the hosts of its own that it runs on.
func (l *LoadBalancer) OwnHosts() Hosts { return l.Keepalived.Hosts }

// IsVirtual reports whether the endpoint's address moves between hosts of the cluster.
func (l *LoadBalancer) IsVirtual() bool {
	return l.Type == LoadBalancerKeepalived || l.Type == LoadBalancerKubeVIP
}

// Proxy is what spreads connections on hosts of the cluster, "" if nothing does.
func (l *LoadBalancer) Proxy() LoadBalancerProxy {
	switch l.Type {
	case LoadBalancerKeepalived:
		return l.Keepalived.Proxy
	case LoadBalancerNodeLocal:
		return l.NodeLocal.Proxy
	case LoadBalancerNone, LoadBalancerInfrastructure, LoadBalancerExternal, LoadBalancerKubeVIP:
	}
	return ""
}

// ports are those at which something of it listens on control plane hosts.
func (l *LoadBalancer) ports() []Port {
	if l.Type == LoadBalancerKubeVIP {
		return []Port{{Number: 2112, Protocol: TCP, For: "kube-vip", Local: true}}
	}
	return nil
}

func (l *LoadBalancer) setDefaults(address string) {
	defaultTo(&l.Type, LoadBalancerNone)
	switch l.Type {
	case LoadBalancerKeepalived:
		defaultTo(&l.Keepalived.Proxy, LoadBalancerHAProxy)
		if ip, err := netip.ParseAddr(address); err == nil {
			bytes := ip.AsSlice()
			defaultTo(&l.Keepalived.VirtualRouterID, int32(bytes[len(bytes)-1]))
			defaultTo(&l.Keepalived.VirtualRouterID, 255)
		}
	case LoadBalancerNodeLocal:
		defaultTo(&l.NodeLocal.Proxy, LoadBalancerHAProxy)
	case LoadBalancerNone, LoadBalancerInfrastructure, LoadBalancerExternal, LoadBalancerKubeVIP:
	}
}

func (l *LoadBalancer) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	keepalived, local, kubeVIP := path.Child("keepalived"), path.Child("nodeLocal"), path.Child("kubeVIP")
	switch {
	case l.Type != LoadBalancerKeepalived:
		errs = l.without(keepalived)
	case l.Keepalived.Hosts.IsZero():
		errs = append(errs, field.Required(keepalived.Child("hosts"),
			"this load balancer runs on hosts of its own: name at least one, two for high availability"))
	}
	errs = append(errs, l.Keepalived.Hosts.validate(keepalived.Child("hosts"))...)
	if l.Type != LoadBalancerNodeLocal && l.NodeLocal != (NodeLocal{}) {
		errs = append(errs, field.Forbidden(local, fmt.Sprintf("the type is %s: remove it, or set %s to %s", l.Type, path.Child("type"), LoadBalancerNodeLocal)))
	}
	if l.Type != LoadBalancerKubeVIP && l.KubeVIP != (KubeVIP{}) {
		errs = append(errs, field.Forbidden(kubeVIP, "no kube-vip is installed: remove it"))
	}
	for _, i := range []struct {
		path *field.Path
		name string
	}{{keepalived, l.Keepalived.Interface}, {kubeVIP, l.KubeVIP.Interface}} {
		if i.name != "" && !interfaceName.MatchString(i.name) {
			errs = append(errs, field.Invalid(i.path.Child("interface"), i.name, "use the name of a network interface, such as eth0"))
		}
	}
	if image := l.KubeVIP.Image; image != "" && !imageReference.MatchString(image) {
		errs = append(errs, field.Invalid(kubeVIP.Child("image"), image,
			"use an image's full reference, such as registry.example/kube-vip/kube-vip:v0.9.1"))
	}
	return errs
}

// without refuses what is for keepalived, where it is not the type.
func (l *LoadBalancer) without(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	k := l.Keepalived
	if !k.Hosts.IsZero() {
		errs = append(errs, field.Forbidden(path.Child("hosts"), fmt.Sprintf(
			"only a load balancer of the type %s runs on hosts of its own: remove them, or use this type", LoadBalancerKeepalived)))
	}
	if k.Proxy != "" || k.Interface != "" || k.VirtualRouterID != 0 {
		errs = append(errs, field.Forbidden(path, "no keepalived is installed: remove it"))
	}
	return errs
}

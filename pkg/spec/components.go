// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The tables of this file have what is known here of the components that fill a cluster's slots: a line each, by the name in the field's
// enumeration. Nothing else of this package asks for one by its name. The rest of a component is in its folder below pkg/component.

// What fills a slot of which nothing is said.
const (
	defaultEtcd       = EtcdKubexm
	defaultKubernetes = KubernetesKubeadm
	defaultRuntime    = ContainerRuntimeContainerd
	defaultNetwork    = NetworkFlannel
	defaultBalancer   = LoadBalancerNone
	defaultProxy      = LoadBalancerHAProxy
	defaultDNS        = DNSCoreDNS
	defaultProxyMode  = ProxyIPTables
)

var (
	etcds = components[EtcdType, Etcd]{
		EtcdKubexm: {
			defaults: (*Etcd).setOwnDefaults, validate: (*Etcd).validateOwn, unused: (*Etcd).withoutHosts,
			adopted: true,
		},
		EtcdKubeadm:  {defaults: (*Etcd).setOwnDefaults, validate: (*Etcd).validateOwn, adopted: true, pods: true},
		EtcdExternal: {validate: (*Etcd).validateExternal, unused: (*Etcd).withoutExternal, users: true, adopted: true},
	}

	kubernetes = components[KubernetesType, Kubernetes]{
		KubernetesKubeadm: {adopted: true, pods: true},
		KubernetesKubexm:  {},
	}

	runtimes = components[ContainerRuntimeType, ContainerRuntime]{
		ContainerRuntimeContainerd: {defaults: dataDirIn("/var/lib/containerd"), templates: true, adopted: true},
		ContainerRuntimeCRIO:       {defaults: dataDirIn("/var/lib/containers"), validate: (*ContainerRuntime).validateForCRIO},
	}

	networks = components[NetworkPlugin, Network]{
		NetworkCalico: {
			defaults: func(n *Network) { n.Calico.setDefaults() },
			validate: func(n *Network, path *field.Path) field.ErrorList { return n.Calico.validate(path, n) },
			unused: func(n *Network, path *field.Path) field.ErrorList {
				return n.without(path.Child("calico"), n.Calico != Calico{}, NetworkCalico)
			},
			fixed: func(n, before *Network, path *field.Path, refuse refuser) {
				n.Calico.fixed(&before.Calico, path.Child("calico"), refuse)
			},
			ports: func(n *Network) []Port { return n.Calico.ports() },
		},
		NetworkFlannel: {
			defaults: func(n *Network) { defaultTo(&n.Flannel.Backend, FlannelVXLAN) },
			unused: func(n *Network, path *field.Path) field.ErrorList {
				return n.without(path.Child("flannel"), n.Flannel != Flannel{}, NetworkFlannel)
			},
			fixed: func(n, before *Network, path *field.Path, refuse refuser) {
				n.Flannel.fixed(&before.Flannel, path.Child("flannel"), refuse)
			},
			ports: func(n *Network) []Port { return n.Flannel.ports() },
			// Its plugin gives addresses of one family.
			templates: true, adopted: true,
		},
		NetworkNone: {users: true, adopted: true},
	}

	balancers = components[LoadBalancerType, LoadBalancer]{
		LoadBalancerNone:           {},
		LoadBalancerInfrastructure: {balances: true},
		LoadBalancerExternal:       {balances: true, users: true},
		LoadBalancerKubeVIP: {
			validate: (*LoadBalancer).validateKubeVIP, unused: (*LoadBalancer).withoutKubeVIP,
			ports:    func(*LoadBalancer) []Port { return []Port{{Number: 2112, Protocol: TCP, For: "kube-vip", Local: true}} },
			balances: true, virtual: true,
		},
		LoadBalancerKeepalived: {
			defaults: func(l *LoadBalancer) { defaultTo(&l.Keepalived.Proxy, defaultProxy) },
			validate: (*LoadBalancer).validateKeepalived, unused: (*LoadBalancer).withoutKeepalived,
			proxy:    func(l *LoadBalancer) LoadBalancerProxy { return l.Keepalived.Proxy },
			balances: true, virtual: true, apart: true,
		},
		LoadBalancerNodeLocal: {
			defaults: func(l *LoadBalancer) { defaultTo(&l.NodeLocal.Proxy, defaultProxy) },
			unused:   (*LoadBalancer).withoutNodeLocal,
			proxy:    func(l *LoadBalancer) LoadBalancerProxy { return l.NodeLocal.Proxy },
			balances: true, local: true,
		},
	}

	dnsServers = components[DNSType, DNS]{
		DNSCoreDNS: {defaults: (*DNS).setCoreDNSDefaults, validate: (*DNS).validateCoreDNS, unused: (*DNS).withoutCoreDNS},
		DNSNone:    {users: true},
	}

	proxies = components[ProxyMode, Proxy]{
		ProxyIPTables: {defaults: (*Proxy).setOwnDefaults},
		ProxyNFTables: {defaults: (*Proxy).setOwnDefaults},
		ProxyIPVS:     {defaults: (*Proxy).setOwnDefaults, validate: (*Proxy).validateIPVS, unused: (*Proxy).withoutIPVS},
		ProxyNone:     {validate: (*Proxy).validateNone, users: true},
	}

	// addonNames are those that come with kubexm.
	addonNames = []string{AddonMetricsServer}
)

// refuser refuses a change.
type refuser func(at *field.Path, was, is any)

// component is a line of such a table: what may be nil is nothing to do. S is the slot's settings.
type component[S any] struct {
	// defaults fills its settings where it is chosen, and validate checks them; unused refuses them where another is chosen.
	defaults         func(settings *S)
	validate, unused func(settings *S, path *field.Path) field.ErrorList
	// fixed refuses changes of its settings.
	fixed func(settings, before *S, path *field.Path, refuse refuser)
	// ports are those at which it listens, on Nodes or control plane hosts.
	ports func(settings *S) []Port
	// users: it is theirs, and kubexm installs nothing in its place.
	users bool
	// adopted: a cluster to which others have given it can be adopted.
	adopted bool
	// templates, of a network: in a dual stack cluster, the runtime configures pods' interfaces from a template; of a runtime: it can.
	templates bool
	// pods, of etcd: its members are static pods; of Kubernetes: it makes these by itself, with no directory of data but dataDir.
	pods bool
	// Of a load balancer: balances says that there is one; virtual that the endpoint's address moves between hosts of the cluster; apart
	// that it runs on hosts of its own, and local on each Node; and proxy what spreads connections on hosts of the cluster.
	balances, virtual, apart, local bool
	proxy                           func(settings *S) LoadBalancerProxy
}

// components is the table of a slot. One that is not in it has no settings.
type components[K ~string, S any] map[K]component[S]

func (t components[K, S]) setDefaults(chosen K, settings *S) {
	if defaults := t[chosen].defaults; defaults != nil {
		defaults(settings)
	}
}

// validate checks the settings of what is chosen, and refuses those of all others.
func (t components[K, S]) validate(chosen K, settings *S, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if validate := t[chosen].validate; validate != nil {
		errs = validate(settings, path)
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if unused := t[name].unused; name != chosen && unused != nil {
			errs = append(errs, unused(settings, path)...)
		}
	}
	return errs
}

func (t components[K, S]) ports(chosen K, settings *S) []Port {
	if ports := t[chosen].ports; ports != nil {
		return ports(settings)
	}
	return nil
}

// those are the names of the components that are so, sorted.
func (t components[K, S]) those(are func(component[S]) bool) []string {
	var names []string
	for name, c := range t {
		if are(c) {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

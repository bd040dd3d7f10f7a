// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tables has a table for each slot of a cluster: which components may fill it. A component is in its house when its folder
// is below pkg/component and its line is here.
package tables

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/binary"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/calico"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/coredns"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/crio"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/haproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/keepalived"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubevip"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/metricsserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/nginx"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/none"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Etcds keep the cluster's objects.
var Etcds = map[spec.EtcdType]component.Etcd{
	spec.EtcdKubexm:   etcd.Units,
	spec.EtcdKubeadm:  etcd.StaticPods,
	spec.EtcdExternal: etcd.External{},
}

// Kubernetes makes hosts Nodes.
var Kubernetes = map[spec.KubernetesType]component.Kubernetes{
	spec.KubernetesKubeadm: kubeadm.Kubernetes{},
	spec.KubernetesKubexm:  binary.Kubernetes{},
}

// Runtimes run containers.
var Runtimes = map[spec.ContainerRuntimeType]component.Runtime{
	spec.ContainerRuntimeContainerd: containerd.Runtime{},
	spec.ContainerRuntimeCRIO:       crio.Runtime{},
}

// Networks connect pods.
var Networks = map[spec.NetworkPlugin]component.Network{
	spec.NetworkCalico:  calico.Network{},
	spec.NetworkFlannel: flannel.Network{},
	spec.NetworkNone:    none.Network{},
}

// Proxies spread connections over the API servers.
var Proxies = map[spec.LoadBalancerProxy]component.Proxy{
	spec.LoadBalancerHAProxy: haproxy.Proxy,
	spec.LoadBalancerNginx:   nginx.Proxy,
}

// LoadBalancers are what a type of load balancer has on hosts of its own and on Nodes. Of a type with a proxy, it is the one that is
// asked for.
var LoadBalancers = map[spec.LoadBalancerType]func(component.Proxy) (external, internal component.LoadBalancer){
	spec.LoadBalancerNone:           noLoadBalancer,
	spec.LoadBalancerInfrastructure: noLoadBalancer,
	spec.LoadBalancerExternal:       noLoadBalancer,
	spec.LoadBalancerKeepalived: func(p component.Proxy) (external, internal component.LoadBalancer) {
		return component.LoadBalancer{Proxy: p, VirtualAddress: keepalived.VirtualAddress{}}, component.LoadBalancer{}
	},
	spec.LoadBalancerNodeLocal: func(p component.Proxy) (external, internal component.LoadBalancer) {
		return component.LoadBalancer{}, component.LoadBalancer{Proxy: p}
	},
	spec.LoadBalancerKubeVIP: func(component.Proxy) (external, internal component.LoadBalancer) {
		return component.LoadBalancer{}, component.LoadBalancer{VirtualAddress: kubevip.VirtualAddress{}}
	},
}

// noLoadBalancer is for types of which nothing is on the cluster's hosts.
func noLoadBalancer(component.Proxy) (external, internal component.LoadBalancer) {
	return component.LoadBalancer{}, component.LoadBalancer{}
}

// DNSServers give Services their names.
var DNSServers = map[spec.DNSType]component.DNS{
	spec.DNSCoreDNS: coredns.DNS{},
	spec.DNSNone:    none.DNS{},
}

// ServiceProxies lead connections to Services to their Pods, by the mode that is asked for.
var ServiceProxies = map[spec.ProxyMode]map[spec.KubernetesType]component.ServiceProxy{
	spec.ProxyIPTables: kubeProxies,
	spec.ProxyNFTables: kubeProxies,
	spec.ProxyIPVS:     kubeProxies,
	spec.ProxyNone:     {spec.KubernetesKubeadm: none.ServiceProxy{}, spec.KubernetesKubexm: none.ServiceProxy{}},
}

// kubeProxies go with the type of Kubernetes' components: kubeadm has Pods of them, and otherwise they are units as the others.
var kubeProxies = map[spec.KubernetesType]component.ServiceProxy{
	spec.KubernetesKubeadm: kubeproxy.Pods{},
	spec.KubernetesKubexm:  kubeproxy.Unit{},
}

// Addons run in the cluster beside what makes it one.
var Addons = map[string]component.Addon{
	spec.AddonMetricsServer: metricsserver.Addon{},
}

// Slots are what fills those of a cluster. An error names a field whose component is not in its table.
func Slots(c spec.Cluster) (component.Slots, error) {
	etcd, noEtcd := pick("etcd.type", c.Etcd.Type, Etcds)
	kubernetes, noKubernetes := pick("kubernetes.type", c.Kubernetes.Type, Kubernetes)
	runtime, noRuntime := pick("containerRuntime.type", c.ContainerRuntime.Type, Runtimes)
	network, noNetwork := pick("network.plugin", c.Network.Plugin, Networks)
	external, internal, noBalancer := loadBalancers(&c.LoadBalancer)
	proxies, noMode := pick("kubernetes.proxy.mode", c.Kubernetes.Proxy.Mode, ServiceProxies)
	proxy, noProxy := pick("kubernetes.type", c.Kubernetes.Type, proxies)
	dns, noDNS := pick("dns.type", c.DNS.Type, DNSServers)
	addons, noAddons := addonsOf(c)
	return component.Slots{
		Etcd: etcd, Kubernetes: kubernetes, Runtime: runtime, Network: network,
		External: external, Internal: internal, DNS: dns, ServiceProxy: proxy, Addons: addons,
	}, errors.Join(noEtcd, noKubernetes, noRuntime, noNetwork, noBalancer, noMode, noProxy, noDNS, noAddons)
}

// Services are systemd's names for what all of the components run beside Kubernetes and etcd, whichever a cluster has.
func Services() []string {
	var names []string
	for _, r := range Runtimes {
		names = append(names, r.Foreign().Unit)
	}
	for _, p := range Proxies {
		names = append(names, p.Service())
		for _, of := range LoadBalancers {
			external, internal := of(p)
			for _, l := range []component.LoadBalancer{external, internal} {
				if l.VirtualAddress != nil && l.VirtualAddress.Service() != "" {
					names = append(names, l.VirtualAddress.Service())
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addonsOf are those that the cluster lists, in its order.
func addonsOf(c spec.Cluster) (component.Addons, error) {
	var addons component.Addons
	var missing []error
	for _, a := range c.Addons {
		one := component.ClusterAddon{Addon: a}
		if !a.IsOwn() {
			var err error
			one.Component, err = pick("addons", a.Name, Addons)
			missing = append(missing, err)
		}
		addons = append(addons, one)
	}
	return addons, errors.Join(missing...)
}

func pick[K ~string, C any](field string, name K, table map[K]C) (C, error) {
	c, ok := table[name]
	if !ok {
		return c, fmt.Errorf("cluster.%s: there is no %q, but %q", field, name, slices.Sorted(maps.Keys(table)))
	}
	return c, nil
}

// loadBalancers are those on hosts of their own and on Nodes.
func loadBalancers(l *spec.LoadBalancer) (external, internal component.LoadBalancer, err error) {
	of, err := pick("loadBalancer.type", l.Type, LoadBalancers)
	if err != nil {
		return external, internal, err
	}
	var proxy component.Proxy
	if name := l.Proxy(); name != "" {
		if proxy, err = pick("loadBalancer proxy", name, Proxies); err != nil {
			return external, internal, err
		}
	}
	external, internal = of(proxy)
	return external, internal, nil
}

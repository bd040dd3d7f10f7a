// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binary holds the steps that run every component of Kubernetes as a systemd unit, with certificates and
// configuration made here: the sibling of kubeadm's way, with the same files in the same places and the same flags, so
// that what runs in the cluster cannot tell them apart.
//
// Certificates of components are renewed in their files. No component is restarted for that: every one of them
// reads these files again, within five minutes at most. What a component reads only when it starts (its program, unit
// and configuration, authorities, the service account keys) is what its Service watches.
package binary

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

const (
	bin        = "/usr/local/bin"
	dir        = "/etc/kubernetes"
	pkiDir     = dir + "/pki"
	manifests  = dir + "/manifests"
	kubeletDir = "/var/lib/kubelet"
)

// Cluster is what components must know of the cluster.
type Cluster struct {
	Name string
	Spec spec.Cluster
	// Etcd is how API servers reach etcd.
	Etcd component.EtcdClient
}

// Node is what components must know of the host.
type Node struct {
	kubelet.Node
	// Server is the URL of the API for this host's kubelet and kube-proxy; LocalServer that of the host's own API server.
	Server, LocalServer string
	// NoProxy: kube-proxy is no unit of the Node.
	NoProxy bool
}

// NodeOf is the view of a target. A control plane host's kubelet and kube-proxy use the API server beside them, so that they work while it
// does; those of others use the endpoint.
func NodeOf(t *spec.Target, node kubelet.Node) Node {
	n := Node{Node: node, Server: "https://" + t.Cluster.ControlPlaneEndpoint.HostPort()}
	if n.ControlPlane {
		n.LocalServer = "https://" + net.JoinHostPort(n.Address, strconv.Itoa(int(t.Cluster.ControlPlaneEndpoint.Port)))
		n.Server = n.LocalServer
	}
	return n
}

// Check says what there is no cluster or Node to be made from. Steps are made of what has passed it.
func Check(c Cluster, n Node) error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Name == "" {
		refuse("the cluster has no name")
	}
	if _, err := netip.ParsePrefix(first(c.Spec.Network.ServiceCIDRs)); err != nil {
		refuse("network.serviceCIDRs: %q is not a network: set one, such as 10.233.0.0/18", first(c.Spec.Network.ServiceCIDRs))
	}
	if _, err := netip.ParsePrefix(first(c.Spec.Network.PodCIDRs)); err != nil {
		refuse("network.podCIDRs: %q is not a network: set one, such as 10.233.64.0/18", first(c.Spec.Network.PodCIDRs))
	}
	if n.Name == "" {
		refuse("the host has no name, which its Node would have")
	}
	if _, err := netip.ParseAddr(n.Address); err != nil {
		refuse("host %s: its address %q is not an IP address, which its Node must have: set internalAddresses", n.Name, n.Address)
	}
	if n.CgroupDriver != "systemd" && n.CgroupDriver != "cgroupfs" {
		refuse("host %s: the cgroup driver is %q: it is systemd or cgroupfs", n.Name, n.CgroupDriver)
	}
	if !isURL(n.Server, "https") {
		refuse("host %s: %q is no URL of the API: want https://host:port", n.Name, n.Server)
	}
	if !n.ControlPlane {
		return errors.Join(errs...)
	}
	if !isURL(n.LocalServer, "https") {
		refuse("host %s: %q is no URL of its API server: want https://host:port", n.Name, n.LocalServer)
	}
	if len(c.Etcd.Endpoints) == 0 {
		refuse("no endpoint of etcd is known, without which no API server runs")
	}
	scheme := "http"
	if c.Etcd.CA != "" {
		scheme = "https"
	}
	for _, e := range c.Etcd.Endpoints {
		if !isURL(e, scheme) {
			refuse("the endpoint of etcd %q is no %s URL: all have the same scheme", e, scheme)
		}
	}
	return errors.Join(errs...)
}

func isURL(text, scheme string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == scheme && u.Hostname() != "" && u.Port() != ""
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// Claim declares what the components will write, so that a reset removes it. (What the kubelet and pods fill is the container
// runtime's to claim.)
func Claim() step.Step {
	return step.New(step.Meta{Name: "kubernetes/claim", Description: "record what Kubernetes will write"},
		step.Claim{Paths: []string{dir, "/run/kubernetes", "/usr/libexec/kubernetes"}})
}

// ProgramNames are the programs that a host needs, beside the one that leads to Services, if that is a unit.
func ProgramNames(controlPlane bool, proxyUnit string) []string {
	names := []string{kubeletName}
	if controlPlane {
		names = []string{apiServer, controllerManager, scheduler, "kubectl", kubeletName}
	}
	if proxyUnit != "" {
		names = append(names, proxyUnit)
	}
	return names
}

// Programs installs the components. They are placed before etcd is restarted: that restarts the API server, and what loses its lease
// meanwhile ends and is started again by systemd.
func Programs(programs []step.Artifact) step.Step {
	var units []string
	for _, name := range []string{apiServer, controllerManager, scheduler, kubeletName, proxy} {
		units = append(units, name+".service")
	}
	return step.New(step.Meta{
		Name: "kubernetes/programs", Description: "install Kubernetes", Disrupts: "restarts Kubernetes' components",
	}, step.Programs(bin, programs, units...)...)
}

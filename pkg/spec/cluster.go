// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Cluster is what all hosts of one cluster share. The names follow the spec of a config.yaml.
//
// +kubebuilder:validation:MinProperties=1
type Cluster struct {
	// kubernetes is how Kubernetes is installed and how its components are set.
	// +optional
	Kubernetes Kubernetes `json:"kubernetes,omitempty,omitzero"`

	// etcd is how etcd is installed and set.
	// +optional
	Etcd Etcd `json:"etcd,omitempty,omitzero"`

	// containerRuntime is what runs containers on each host, and where it gets images.
	// +optional
	ContainerRuntime ContainerRuntime `json:"containerRuntime,omitempty,omitzero"`

	// controlPlaneEndpoint is where the API server is reached.
	// +optional
	ControlPlaneEndpoint ControlPlaneEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// network is how pods and services are addressed and connected.
	// +optional
	Network Network `json:"network,omitempty,omitzero"`

	// dns is how names are resolved in the cluster.
	// +optional
	DNS DNS `json:"dns,omitempty,omitzero"`

	// system is what the operating system of every host is made to be.
	// +optional
	System System `json:"system,omitempty,omitzero"`

	// certificates is for how long certificates are made, and when they are renewed.
	// +optional
	Certificates Certificates `json:"certificates,omitempty,omitzero"`

	// artifacts is where binaries, images and charts come from.
	// +optional
	Artifacts Artifacts `json:"artifacts,omitempty,omitzero"`
}

// Default fills what was left out.
func (c *Cluster) Default() {
	c.Kubernetes.setDefaults()
	c.Etcd.setDefaults(c.Kubernetes.Type)
	c.ContainerRuntime.setDefaults()
	c.ControlPlaneEndpoint.setDefaults()
	c.Network.setDefaults()
	c.DNS.setDefaults()
	c.System.setDefaults()
	c.Certificates.setDefaults()
}

// Validate checks a cluster that has its defaults.
func (c *Cluster) Validate(path *field.Path) field.ErrorList {
	errs := c.Kubernetes.validate(path.Child("kubernetes"))
	errs = append(errs, c.Etcd.validate(path.Child("etcd"))...)
	errs = append(errs, c.ContainerRuntime.validate(path.Child("containerRuntime"))...)
	errs = append(errs, c.ControlPlaneEndpoint.validate(path.Child("controlPlaneEndpoint"))...)
	errs = append(errs, c.Network.validate(path.Child("network"))...)
	errs = append(errs, c.DNS.validate(path.Child("dns"))...)
	errs = append(errs, c.System.validate(path.Child("system"))...)
	errs = append(errs, c.Certificates.validate(path.Child("certificates"))...)
	errs = append(errs, c.Artifacts.validate(path.Child("artifacts"))...)
	return append(errs, c.validateTogether(path)...)
}

// validateTogether checks what concerns more than one part. Values that are bad in themselves are passed over.
func (c *Cluster) validateTogether(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	networks, endpoint := path.Child("network"), path.Child("controlPlaneEndpoint")

	mask := int(c.Kubernetes.NodeCIDRMaskSize)
	for i, cidr := range c.Network.PodCIDRs {
		// The controller manager takes at most 16 bits of Node networks from one pod network.
		prefix, err := netip.ParsePrefix(cidr)
		if err == nil && prefix.Addr().Is4() && (mask < prefix.Bits() || mask > prefix.Bits()+16) {
			errs = append(errs, field.Invalid(path.Child("kubernetes", "nodeCIDRMaskSize"), mask, fmt.Sprintf(
				"cannot be cut from %s %s: use %d to %d, or another pod network",
				networks.Child("podCIDRs").Index(i), cidr, max(16, prefix.Bits()), min(28, prefix.Bits()+16))))
		}
	}
	errs = append(errs, c.validateOutside(endpoint.Child("address"), c.ControlPlaneEndpoint.Address)...)

	etcd, runtime := c.Etcd.DataDir, c.ContainerRuntime.DataDir
	if etcd != "" && runtime != "" && (isWithin(etcd, runtime) || isWithin(runtime, etcd)) {
		errs = append(errs, field.Invalid(path.Child("etcd", "dataDir"), etcd, fmt.Sprintf(
			"lies in, or around, %s %s: use directories of their own", path.Child("containerRuntime", "dataDir"), runtime)))
	}

	domain, zone := c.ControlPlaneEndpoint.Domain, c.DNS.ClusterDomain
	if domain != "" && zone != "" && isSubdomain(domain, zone) {
		errs = append(errs, field.Invalid(endpoint.Child("domain"), domain, fmt.Sprintf(
			"is in the domain %s of services and pods, where CoreDNS would not find it: use a domain outside of it", zone)))
	}
	for i, entry := range c.System.EtcHosts {
		for j, name := range entry.Hostnames {
			if domain != "" && name == domain && entry.Address != c.ControlPlaneEndpoint.Address {
				errs = append(errs, field.Invalid(path.Child("system", "etcHosts").Index(i).Child("hostnames").Index(j), name, fmt.Sprintf(
					"is %s, which is written to every host already: set its address in %s", endpoint.Child("domain"), endpoint.Child("address"))))
			}
		}
	}
	return errs
}

// validateOutside refuses an address in the networks of pods and services. No address is fine.
func (c *Cluster) validateOutside(path *field.Path, address string) field.ErrorList {
	var errs field.ErrorList
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil
	}
	check := func(kind string, cidrs []string) {
		for _, cidr := range cidrs {
			if prefix, err := netip.ParsePrefix(cidr); err == nil && prefix.Contains(ip) {
				errs = append(errs, field.Invalid(path, address, fmt.Sprintf(
					"is in the network %s of %s: give %s a network that no host is in", cidr, kind, kind)))
			}
		}
	}
	check("pods", c.Network.PodCIDRs)
	check("services", c.Network.ServiceCIDRs)
	return errs
}

// defaultTo sets what was left out.
func defaultTo[T comparable](what *T, value T) { *what = cmp.Or(*what, value) }

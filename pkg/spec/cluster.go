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

	// loadBalancer is what carries requests to the API servers.
	// +optional
	LoadBalancer LoadBalancer `json:"loadBalancer,omitempty,omitzero"`

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

	// addons are installed into the cluster, and uninstalled when they leave the list.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Addons []Addon `json:"addons,omitempty"`

	// hooks are scripts that run before or after a task on every host that has the task.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Hooks []Hook `json:"hooks,omitempty"`

	// limits are how long steps may take, how often they are tried and on how many hosts at once they are made.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Limits []Limit `json:"limits,omitempty"`

	// disruption is what an act that disrupts a host in use waits for: somebody's approval, a maintenance window. It is for
	// objects: the command kubexm keeps to the windows alone, as who calls it is there.
	// +optional
	Disruption Disruption `json:"disruption,omitempty,omitzero"`

	// driftPolicy is Repair, where a difference that is found on a host is repaired at once, or Report, where it is shown by the
	// KubexmConfig's condition HostConverged until somebody asks for the repair (annotation bootstrap.cluster.x-k8s.io/converge) or
	// declares something else. If unset, Repair.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// onFailure is what becomes of what a run has changed on a host when a step fails: Stop leaves it, and the next run begins there;
	// UndoTask restores what was changed for the task that failed; UndoRun restores all that the run has changed. If unset, Stop.
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// reset is what becomes of a host when its Machine is deleted. If unset, it is reset.
	// +optional
	Reset Reset `json:"reset,omitempty,omitzero"`
}

// Default fills what was left out.
func (c *Cluster) Default() {
	c.Kubernetes.setDefaults()
	c.Etcd.setDefaults()
	c.ContainerRuntime.setDefaults()
	c.ControlPlaneEndpoint.setDefaults(&c.LoadBalancer)
	c.LoadBalancer.setDefaults(c.ControlPlaneEndpoint.Address)
	c.Network.setDefaults()
	c.Kubernetes.setMaskDefaults(&c.Network)
	c.DNS.setDefaults()
	c.System.setDefaults()
	c.Certificates.setDefaults()
}

// Validate checks a cluster that has its defaults.
func (c *Cluster) Validate(path *field.Path) field.ErrorList {
	return withBounds("Cluster", c, path, c.ValidateRules(path))
}

// ValidateRules checks what the schema cannot say. It is enough for a cluster that an API server has validated by the schema.
func (c *Cluster) ValidateRules(path *field.Path) field.ErrorList {
	errs := c.Kubernetes.validate(path.Child("kubernetes"))
	errs = append(errs, c.Etcd.validate(path.Child("etcd"))...)
	errs = append(errs, c.ContainerRuntime.validate(path.Child("containerRuntime"))...)
	errs = append(errs, c.LoadBalancer.validate(path.Child("loadBalancer"))...)
	errs = append(errs, c.ControlPlaneEndpoint.validate(path.Child("controlPlaneEndpoint"), &c.LoadBalancer)...)
	errs = append(errs, c.Network.validate(path.Child("network"))...)
	errs = append(errs, c.DNS.validate(path.Child("dns"))...)
	errs = append(errs, c.System.validate(path.Child("system"))...)
	errs = append(errs, c.Certificates.validate(path.Child("certificates"))...)
	errs = append(errs, c.Artifacts.validate(path.Child("artifacts"))...)
	errs = append(errs, validateAddons(path.Child("addons"), c.Addons)...)
	errs = append(errs, validateHooks(path.Child("hooks"), c.Hooks)...)
	errs = append(errs, validateLimits(path.Child("limits"), c.Limits, c.Hooks)...)
	errs = append(errs, c.Disruption.validate(path.Child("disruption"))...)
	return append(errs, c.validateTogether(path)...)
}

// validateTogether checks what concerns more than one part. Values that are bad in themselves are passed over.
func (c *Cluster) validateTogether(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	networks, endpoint := path.Child("network"), path.Child("controlPlaneEndpoint")
	errs = append(errs, c.validateMasks(path.Child("kubernetes"), networks.Child("podCIDRs"))...)
	errs = append(errs, c.validateRuntime(path)...)
	errs = append(errs, c.validateOutside(endpoint.Child("address"), c.ControlPlaneEndpoint.Address)...)
	for i, sysctl := range c.System.Sysctls {
		if c.Network.IsDualStack() && sysctlKey(sysctl.Name) == "net/ipv6/conf/all/forwarding" && sysctl.Value != "1" {
			errs = append(errs, field.Invalid(path.Child("system", "sysctls").Index(i).Child("value"), sysctl.Value,
				"pods cannot reach each other by IPv6 unless it is 1: remove it"))
		}
	}

	etcd, runtime := c.Etcd.DataDir, c.ContainerRuntime.DataDir
	if etcd != "" && runtime != "" && (isWithin(etcd, runtime) || isWithin(runtime, etcd)) {
		errs = append(errs, field.Invalid(path.Child("etcd", "dataDir"), etcd, fmt.Sprintf(
			"lies in, or around, %s %s: use directories of their own", path.Child("containerRuntime", "dataDir"), runtime)))
	}
	errs = append(errs, c.validateWALTogether(path)...)

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

// maxNodeBits is how many bits of Nodes' networks the controller manager takes from one pod network.
const maxNodeBits = 16

// validateMasks checks the prefix lengths of what Nodes get of the pods' networks.
func (c *Cluster) validateMasks(path, pods *field.Path) field.ErrorList {
	k, dual := &c.Kubernetes, c.Network.IsDualStack()
	var errs field.ErrorList
	for _, mask := range []struct {
		name              string
		value             int32
		family            Family
		dual              bool
		smallest, largest int
	}{
		{"nodeCIDRMaskSize", k.NodeCIDRMaskSize, IPv4, false, 16, 28},
		{"nodeCIDRMaskSizeIPv4", k.NodeCIDRMaskSizeIPv4, IPv4, true, 16, 28},
		{"nodeCIDRMaskSizeIPv6", k.NodeCIDRMaskSizeIPv6, IPv6, true, 16, 124},
	} {
		at := path.Child(mask.name)
		switch {
		case mask.dual == dual:
			if bad := inRange(at, int64(mask.value), int64(mask.smallest), int64(mask.largest)); mask.value != 0 && len(bad) > 0 {
				errs = append(errs, bad...)
				continue
			}
			errs = append(errs, c.validateMask(at, pods, mask.family, int(mask.value), mask.smallest, mask.largest)...)
		case mask.value == 0:
		case dual:
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("%s has two networks: remove it, or set %s and %s instead",
				pods, path.Child("nodeCIDRMaskSizeIPv4"), path.Child("nodeCIDRMaskSizeIPv6"))))
		default:
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("%s has one network: set %s instead", pods, path.Child("nodeCIDRMaskSize"))))
		}
	}
	return errs
}

// validateMask checks that Nodes' networks with this prefix length can be cut from the pod network of a family.
func (c *Cluster) validateMask(path, pods *field.Path, family Family, mask, smallest, largest int) field.ErrorList {
	for i, cidr := range c.Network.PodCIDRs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil || familyOfCIDR(cidr) != family || mask >= prefix.Bits() && mask <= prefix.Bits()+maxNodeBits {
			continue
		}
		return field.ErrorList{field.Invalid(path, mask, fmt.Sprintf("cannot be cut from %s %s: use %d to %d, or another pod network",
			pods.Index(i), cidr, max(smallest, prefix.Bits()), min(largest, prefix.Bits()+maxNodeBits)))}
	}
	return nil
}

// NodeMaskArgs are the flags of kube-controller-manager that say which part of the pods' networks each Node gets. It takes the
// one for both families only where there is one.
func (c *Cluster) NodeMaskArgs() []Arg {
	k := &c.Kubernetes
	if !c.Network.IsDualStack() {
		return []Arg{{Name: "node-cidr-mask-size", Value: fmt.Sprint(k.NodeCIDRMaskSize)}}
	}
	return []Arg{
		{Name: "node-cidr-mask-size-ipv4", Value: fmt.Sprint(k.NodeCIDRMaskSizeIPv4)},
		{Name: "node-cidr-mask-size-ipv6", Value: fmt.Sprint(k.NodeCIDRMaskSizeIPv6)},
	}
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

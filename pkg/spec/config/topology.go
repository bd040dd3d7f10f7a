// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// The most hosts that a role group may have.
const (
	maxEtcd          = 7
	maxControlPlanes = 9
)

// with are the hosts that have a role, each once: that two have one name is refused by itself.
func (c *Cluster) with(role spec.Role) []spec.Host {
	var hosts []spec.Host
	for i := range c.Hosts {
		h := c.Hosts[i].Spec()
		if h.Role == role && !slices.ContainsFunc(hosts, func(o spec.Host) bool { return o.Name == h.Name }) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// validateGroups checks how many hosts there are for each purpose.
func (c *Cluster) validateGroups(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	controlPlane, etcd := path.Child("control-plane"), path.Child("etcd")
	controlPlanes, members := len(c.with(spec.RoleControlPlane)), len(c.with(spec.RoleEtcd))
	switch {
	case members > 0:
		errs = append(errs, validateMembers(etcd, members, "")...)
	case c.Spec.Etcd.IsStacked() && controlPlanes > 0:
		errs = append(errs, validateMembers(controlPlane, controlPlanes, "etcd runs on them, and ")...)
	}
	if controlPlanes > maxControlPlanes {
		errs = append(errs, field.TooMany(controlPlane, controlPlanes, maxControlPlanes))
	}
	return append(errs, c.validateControlPlaneLabels()...)
}

// validateMembers wants as many members of etcd as can agree: of an even number, not one more may fail than of one less.
func validateMembers(path *field.Path, members int, because string) field.ErrorList {
	if members%2 == 1 && members <= maxEtcd {
		return nil
	}
	return field.ErrorList{field.Invalid(path, members, fmt.Sprintf(
		"%sits members decide by majority: name 1, 3, 5 or 7 hosts", because))}
}

// validateControlPlaneLabels wants the same labels on all control plane hosts, which are made from one template.
func (c *Cluster) validateControlPlaneLabels() field.ErrorList {
	first := -1
	for i := range c.Hosts {
		switch host := &c.Hosts[i]; {
		case !slices.Contains(host.Roles, spec.RoleControlPlane):
		case first < 0:
			first = i
		case !maps.Equal(host.Labels, c.Hosts[first].Labels):
			path := field.NewPath("spec", "hosts").Index(i).Child("labels")
			return field.ErrorList{field.Invalid(path, labels(host.Labels), fmt.Sprintf(
				"control plane hosts have the same labels, and those of %s are %s: give both the same",
				c.Hosts[first].Name, labels(c.Hosts[first].Labels)))}
		}
	}
	return nil
}

func labels(of map[string]string) string {
	if len(of) == 0 {
		return "none"
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, key+"="+of[key])
	}
	return strings.Join(all, ",")
}

// validateEndpoint checks, in view of the hosts, that somebody answers at the endpoint.
func (c *Cluster) validateEndpoint(path *field.Path) field.ErrorList {
	e, balancer, controlPlanes := &c.Spec.ControlPlaneEndpoint, &c.Spec.LoadBalancer, c.with(spec.RoleControlPlane)
	if len(controlPlanes) == 0 {
		return nil
	}
	at := path.Child("address")
	var own []string // an endpoint is of IPv4
	for i := range controlPlanes {
		own = append(own, slices.DeleteFunc(controlPlanes[i].Addresses(), func(a string) bool { return spec.FamilyOf(a) == spec.IPv6 })...)
	}
	switch {
	case len(controlPlanes) > 1 && !balancer.IsPresent():
		return field.ErrorList{field.Required(path.Child("internal"), fmt.Sprintf(
			"a control plane of %d hosts is reached by a load balancer: set it to haproxy, nginx or kube-vip, or set %s", len(controlPlanes),
			path.Child("external")))}
	case e.Address == "" && len(own) == 0 && c.Spec.Network.PrimaryFamily() == spec.IPv6 && // else the host is refused
		!balancer.IsVirtual() && balancer.Type != spec.LoadBalancerExternal && e.DomainResolution != spec.DomainExternalDNS:
		return field.ErrorList{field.Required(at, fmt.Sprintf(
			"it is of IPv4, and no control plane host has such an address: add one to the internalAddresses of the first, or set %s",
			path.Child("external")))}
	case e.Address == "" || balancer.Type == spec.LoadBalancerExternal:
		return nil
	case balancer.IsVirtual():
		return c.validateVirtual(at, e.Address)
	}
	if slices.Contains(own, e.Address) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, e.Address, fmt.Sprintf(
		"is not an address of a control plane host, and no load balancer has it: remove it, use %s, or set %s",
		strings.Join(own, " or "), path.Child("external")))}
}

// validateVirtual wants a virtual address that no host has for itself.
func (c *Cluster) validateVirtual(path *field.Path, address string) field.ErrorList {
	for i := range c.Hosts {
		if h := c.Hosts[i].Spec(); slices.Contains(h.Addresses(), address) {
			return field.ErrorList{field.Invalid(path, address, fmt.Sprintf(
				"is an address of %s, and a virtual address moves from host to host: use another one of the hosts' network, that no host has",
				h.Name))}
		}
	}
	return nil
}

// warnOfLabels tells of labels that come to nothing: they are Nodes' labels.
func (r *reading) warnOfLabels() {
	for i := range r.cluster.Hosts {
		host := r.cluster.Hosts[i].Spec()
		if host.Role == "" || host.Role.IsNode() || len(r.cluster.Hosts[i].Labels) == 0 {
			continue
		}
		at := r.placeOf(fmt.Sprintf("spec.hosts[%d].labels", i))
		r.warnings = append(r.warnings, Problem{Path: at.path, Line: at.line,
			Text: fmt.Sprintf("%s does not become a Node, which these labels would be for: they are not used", host.Name)})
	}
}

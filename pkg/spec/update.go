// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateUpdate refuses the changes that a running cluster with so many control plane hosts cannot follow. It compares as if both had
// their defaults; an endpoint's address, which the cluster finds when it was left out, may be filled in later.
func ValidateUpdate(old, updated *Cluster, controlPlanes int32, path *field.Path) field.ErrorList {
	before, after := old.DeepCopy(), updated.DeepCopy()
	before.Default()
	after.Default()

	var errs field.ErrorList
	endpoint := path.Child("controlPlaneEndpoint")
	refuse := func(at *field.Path, was, is any) {
		errs = append(errs, field.Invalid(at, is, fmt.Sprintf(
			"cannot be changed once the cluster exists: set it back to %q, or create another cluster", fmt.Sprint(was))))
	}
	for _, fixed := range []struct {
		at      *field.Path
		was, is string
	}{
		{path.Child("kubernetes", "type"), string(before.Kubernetes.Type), string(after.Kubernetes.Type)},
		{path.Child("etcd", "type"), string(before.Etcd.Type), string(after.Etcd.Type)},
		{path.Child("etcd", "dataDir"), before.Etcd.DataDir, after.Etcd.DataDir},
		{path.Child("containerRuntime", "type"), string(before.ContainerRuntime.Type), string(after.ContainerRuntime.Type)},
		{path.Child("containerRuntime", "dataDir"), before.ContainerRuntime.DataDir, after.ContainerRuntime.DataDir},
		{path.Child("network", "plugin"), string(before.Network.Plugin), string(after.Network.Plugin)},
		{path.Child("dns", "type"), string(before.DNS.Type), string(after.DNS.Type)},
		{path.Child("dns", "clusterDomain"), before.DNS.ClusterDomain, after.DNS.ClusterDomain},
		{path.Child("certificates", "caAlgorithm"), string(before.Certificates.CAAlgorithm), string(after.Certificates.CAAlgorithm)},
	} {
		if fixed.was != fixed.is {
			refuse(fixed.at, fixed.was, fixed.is)
		}
	}
	if was, is := before.Kubernetes.Proxy.Mode, after.Kubernetes.Proxy.Mode; was != is && (proxies[was].users || proxies[is].users) {
		refuse(path.Child("kubernetes", "proxy", "mode"), was, is)
	}
	errs = append(errs, validateLoadBalancerUpdate(before, after, controlPlanes, path)...)
	if was, is := before.ControlPlaneEndpoint.Port, after.ControlPlaneEndpoint.Port; was != is {
		refuse(endpoint.Child("port"), was, is)
	}
	if was, is := before.Certificates.CAValidityDays, after.Certificates.CAValidityDays; was != is {
		refuse(path.Child("certificates", "caValidityDays"), was, is)
	}
	if was, is := place(&before.Etcd), place(&after.Etcd); before.Etcd.Type == after.Etcd.Type && was != is {
		refuse(path.Child("etcd", "hosts"), was, is)
	}
	if before.Etcd.Type == after.Etcd.Type {
		after.Etcd.validateWALUpdate(&before.Etcd, path.Child("etcd", "extraArgs"), refuse)
	}
	after.Kubernetes.APIServer.validateStoreUpdate(&before.Kubernetes.APIServer, path.Child("kubernetes", "apiServer", "extraArgs"), refuse)
	if was, is := before.Etcd.External.Endpoints, after.Etcd.External.Endpoints; !equality.Semantic.DeepEqual(was, is) {
		refuse(path.Child("etcd", "external", "endpoints"), was, is)
	}
	for _, fixed := range []struct {
		name    string
		was, is int32
	}{
		{"nodeCIDRMaskSize", before.Kubernetes.NodeCIDRMaskSize, after.Kubernetes.NodeCIDRMaskSize},
		{"nodeCIDRMaskSizeIPv4", before.Kubernetes.NodeCIDRMaskSizeIPv4, after.Kubernetes.NodeCIDRMaskSizeIPv4},
		{"nodeCIDRMaskSizeIPv6", before.Kubernetes.NodeCIDRMaskSizeIPv6, after.Kubernetes.NodeCIDRMaskSizeIPv6},
	} {
		// Other networks have other masks, and are refused below.
		if fixed.was != fixed.is && before.Network.IsDualStack() == after.Network.IsDualStack() {
			refuse(path.Child("kubernetes", fixed.name), fixed.was, fixed.is)
		}
	}
	if was, is := before.Network.PodCIDRs, after.Network.PodCIDRs; !slices.Equal(was, is) {
		refuse(path.Child("network", "podCIDRs"), was, is)
	}
	after.Network.fixed(&before.Network, path.Child("network"), refuse)
	errs = append(errs, after.Network.validateHostCIDRsUpdate(&before.Network, path.Child("network", "hostCIDRs"))...)
	if was, is := before.Network.ServiceCIDRs, after.Network.ServiceCIDRs; !slices.Equal(was, is) {
		refuse(path.Child("network", "serviceCIDRs"), was, is)
	}
	errs = append(errs, ValidateEncryptionUpdate(
		&before.Kubernetes.EncryptionAtRest, &after.Kubernetes.EncryptionAtRest, path.Child("kubernetes", "encryptionAtRest"))...)
	return errs
}

// validateStoreUpdate refuses that the API server looks for objects elsewhere than where they are: it would come up without them.
func (a *APIServer) validateStoreUpdate(before *APIServer, args *field.Path, refuse refuser) {
	for _, store := range []struct {
		name string
		of   func(value string) string
	}{
		{"etcd-prefix", func(value string) string { return path.Join("/", cmp.Or(value, "registry")) }},
		{"etcd-servers-overrides", func(value string) string { return value }},
	} {
		_, had := flag(before.ExtraArgs, store.name)
		_, has := flag(a.ExtraArgs, store.name)
		if store.of(had) != store.of(has) {
			refuse(args, said(store.name, had), said(store.name, has))
		}
	}
}

// said is a flag with its value, or that there is none.
func said(name, value string) string {
	if value == "" {
		return "no " + name
	}
	return name + "=" + value
}

// place is where an etcd that is run here runs, in words. Which hosts of its own these are may change.
func place(e *Etcd) string {
	if e.Hosts.IsZero() {
		return "on the control plane's hosts"
	}
	return "on hosts of its own"
}

// validateLoadBalancerUpdate refuses changes by which the API server would not be reached any more where hosts and users look for it. From
// None, a cluster may go to any type while there is one control plane host: that the endpoint is a name, which stays, is what makes it
// possible. An address stays with its host.
func validateLoadBalancerUpdate(before, after *Cluster, controlPlanes int32, path *field.Path) field.ErrorList {
	at, endpoint := path.Child("loadBalancer"), path.Child("controlPlaneEndpoint")
	was, is := &before.LoadBalancer, &after.LoadBalancer
	from, to := &before.ControlPlaneEndpoint, &after.ControlPlaneEndpoint
	fixed := func(at *field.Path, was, is string) field.ErrorList {
		if was == is {
			return nil
		}
		return field.ErrorList{field.Invalid(at, is, fmt.Sprintf(
			"cannot be changed once the cluster exists: set it back to %q, or create another cluster", was))}
	}
	begins := !was.IsPresent() && is.IsPresent()
	switch {
	case begins && controlPlanes != 1:
		return field.ErrorList{field.Invalid(at.Child("type"), is.Type, fmt.Sprintf(
			"can be changed from %s while there is one control plane host, and there are %d: set it back", was.Type, controlPlanes))}
	case begins && from.Domain == "" && is.IsLocal(),
		begins && from.Domain == "" && (from.Address == "" || from.Address != to.Address || is.IsVirtual()):
		return field.ErrorList{field.Invalid(at.Child("type"), is.Type, fmt.Sprintf(
			"the endpoint is an address of the control plane host, which stays with it: a load balancer can only take over a name (%s); "+
				"set it back to %s, or create another cluster", endpoint.Child("domain"), was.Type))}
	case begins:
		return fixed(endpoint.Child("domain"), from.Domain, to.Domain)
	}
	errs := fixed(at.Child("type"), string(was.Type), string(is.Type))
	errs = append(errs, fixed(endpoint.Child("domain"), from.Domain, to.Domain)...)
	if from.Address != "" {
		errs = append(errs, fixed(endpoint.Child("address"), from.Address, to.Address)...)
	}
	if was.Type != is.Type {
		return errs
	}
	errs = append(errs, fixed(at.Child("keepalived", "proxy"), string(was.Keepalived.Proxy), string(is.Keepalived.Proxy))...)
	return append(errs, fixed(at.Child("nodeLocal", "proxy"), string(was.NodeLocal.Proxy), string(is.NodeLocal.Proxy))...)
}

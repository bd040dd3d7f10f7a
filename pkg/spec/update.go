// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateUpdate refuses the changes that a running cluster cannot follow. It compares as if both had their defaults;
// an endpoint's address, which the cluster finds when it was left out, may be filled in later.
func ValidateUpdate(old, updated *Cluster, path *field.Path) field.ErrorList {
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
		{endpoint.Child("external"), string(before.ControlPlaneEndpoint.External), string(after.ControlPlaneEndpoint.External)},
		{endpoint.Child("internal"), string(before.ControlPlaneEndpoint.Internal), string(after.ControlPlaneEndpoint.Internal)},
		{endpoint.Child("domain"), before.ControlPlaneEndpoint.Domain, after.ControlPlaneEndpoint.Domain},
		{path.Child("network", "plugin"), string(before.Network.Plugin), string(after.Network.Plugin)},
		{path.Child("dns", "clusterDomain"), before.DNS.ClusterDomain, after.DNS.ClusterDomain},
		{path.Child("certificates", "caAlgorithm"), string(before.Certificates.CAAlgorithm), string(after.Certificates.CAAlgorithm)},
	} {
		if fixed.was != fixed.is {
			refuse(fixed.at, fixed.was, fixed.is)
		}
	}
	if was, is := before.ControlPlaneEndpoint.Address, after.ControlPlaneEndpoint.Address; was != "" && was != is {
		refuse(endpoint.Child("address"), was, is)
	}
	if was, is := before.ControlPlaneEndpoint.Port, after.ControlPlaneEndpoint.Port; was != is {
		refuse(endpoint.Child("port"), was, is)
	}
	if was, is := before.Certificates.CAValidityDays, after.Certificates.CAValidityDays; was != is {
		refuse(path.Child("certificates", "caValidityDays"), was, is)
	}
	if was, is := place(&before.Etcd), place(&after.Etcd); before.Etcd.Type == after.Etcd.Type && was != is {
		refuse(path.Child("etcd", "hosts"), was, is)
	}
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
	if was, is := before.Network.ServiceCIDRs, after.Network.ServiceCIDRs; !slices.Equal(was, is) {
		refuse(path.Child("network", "serviceCIDRs"), was, is)
	}
	errs = append(errs, ValidateEncryptionUpdate(
		&before.Kubernetes.EncryptionAtRest, &after.Kubernetes.EncryptionAtRest, path.Child("kubernetes", "encryptionAtRest"))...)
	names := path.Child("kubernetes", "apiServer", "certSANs")
	was, is := before.Kubernetes.APIServer.CertSANs, after.Kubernetes.APIServer.CertSANs
	if before.Kubernetes.Type == KubernetesKubeadm && !slices.Equal(was, is) { // kubeadm makes the API server's certificate once
		errs = append(errs, field.Forbidden(names,
			"this version cannot change it on a running cluster: set it back to what it was, or create another cluster"))
	}
	return errs
}

// place is where an etcd that is run here runs, in words. Which hosts of its own these are may change.
func place(e *Etcd) string {
	if e.Hosts.IsZero() {
		return "on the control plane's hosts"
	}
	return "on hosts of its own"
}

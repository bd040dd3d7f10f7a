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
		{path.Child("controlPlaneEndpoint", "domain"), before.ControlPlaneEndpoint.Domain, after.ControlPlaneEndpoint.Domain},
		{path.Child("network", "plugin"), string(before.Network.Plugin), string(after.Network.Plugin)},
		{path.Child("dns", "clusterDomain"), before.DNS.ClusterDomain, after.DNS.ClusterDomain},
	} {
		if fixed.was != fixed.is {
			refuse(fixed.at, fixed.was, fixed.is)
		}
	}
	if was, is := before.ControlPlaneEndpoint.Address, after.ControlPlaneEndpoint.Address; was != "" && was != is {
		refuse(path.Child("controlPlaneEndpoint", "address"), was, is)
	}
	if was, is := before.ControlPlaneEndpoint.Port, after.ControlPlaneEndpoint.Port; was != is {
		refuse(path.Child("controlPlaneEndpoint", "port"), was, is)
	}
	if was, is := before.Kubernetes.NodeCIDRMaskSize, after.Kubernetes.NodeCIDRMaskSize; was != is {
		refuse(path.Child("kubernetes", "nodeCIDRMaskSize"), was, is)
	}
	if was, is := before.Network.PodCIDRs, after.Network.PodCIDRs; !slices.Equal(was, is) {
		refuse(path.Child("network", "podCIDRs"), was, is)
	}
	if was, is := before.Network.ServiceCIDRs, after.Network.ServiceCIDRs; !slices.Equal(was, is) {
		refuse(path.Child("network", "serviceCIDRs"), was, is)
	}
	return append(errs, frozen(before, after, path)...)
}

// frozen refuses changes of what kubeadm is told once, when it makes the control plane or joins a host, and of which
// nothing would reach a host that runs already.
func frozen(before, after *Cluster, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	was, is := before.Kubernetes, after.Kubernetes
	for _, part := range []struct {
		at   *field.Path
		same bool
	}{
		{path.Child("kubernetes", "apiServer"), equality.Semantic.DeepEqual(was.APIServer, is.APIServer)},
		{path.Child("kubernetes", "controllerManager"), equality.Semantic.DeepEqual(was.ControllerManager, is.ControllerManager)},
		{path.Child("kubernetes", "scheduler"), equality.Semantic.DeepEqual(was.Scheduler, is.Scheduler)},
		{path.Child("kubernetes", "kubelet"), equality.Semantic.DeepEqual(was.Kubelet, is.Kubelet)},
		{path.Child("kubernetes", "proxy"), equality.Semantic.DeepEqual(was.Proxy, is.Proxy)},
		{path.Child("kubernetes", "featureGates"), equality.Semantic.DeepEqual(was.FeatureGates, is.FeatureGates)},
		{path.Child("etcd", "extraArgs"), equality.Semantic.DeepEqual(before.Etcd.ExtraArgs, after.Etcd.ExtraArgs)},
	} {
		if !part.same {
			errs = append(errs, field.Forbidden(part.at,
				"this version cannot change it on a running cluster: set it back to what it was, or create another cluster"))
		}
	}
	return errs
}

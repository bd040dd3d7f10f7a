// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateAdoption refuses a cluster that cannot be adopted, as somebody else has made it. The details are remedies.
func ValidateAdoption(c *Cluster, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Kubernetes.Type != KubernetesKubeadm {
		errs = append(errs, field.Invalid(path.Child("kubernetes", "type"), c.Kubernetes.Type, "only what kubeadm has made can be adopted: set kubeadm"))
	}
	if c.Etcd.Type != EtcdKubeadm && c.Etcd.Type != EtcdExternal {
		errs = append(errs, field.Invalid(path.Child("etcd", "type"), c.Etcd.Type,
			"only a cluster whose etcd runs in kubeadm's static pods, or is external, can be adopted: set kubeadm, or external"))
	}
	if c.ContainerRuntime.Type != ContainerRuntimeContainerd {
		errs = append(errs, field.Invalid(path.Child("containerRuntime", "type"), c.ContainerRuntime.Type,
			"only a cluster with containerd can be adopted: set containerd"))
	}
	if p := c.Network.Plugin; p != NetworkFlannel && p != NetworkNone {
		errs = append(errs, field.Invalid(path.Child("network", "plugin"), p,
			"only a cluster with flannel, or one whose network is left alone, can be adopted: set none, and the network stays as it is and yours"))
	}
	return errs
}

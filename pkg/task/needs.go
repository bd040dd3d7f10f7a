// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubernetes"
)

// Check refuses what the components of a Node cannot be configured for.
func Check(in component.Inputs) error {
	if in.IsNode() && in.IsBinary() {
		return kubernetes.Check(binaryCluster(in), binaryNode(in))
	}
	return nil
}

// CNINeeds are the standard network plugins.
func CNINeeds(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	return component.Needs{Programs: []component.Programs{{Component: "cni-plugins"}}}
}

// DNSNeeds are those of the cluster's DNS server.
func DNSNeeds(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	return component.Needs{Images: component.ImagesNamed("coredns")}
}

// KubernetesNeeds are those of Kubernetes' own components.
func KubernetesNeeds(in component.Inputs) component.Needs {
	switch {
	case !in.IsNode():
		return component.Needs{}
	case in.IsBinary():
		return component.Needs{Programs: []component.Programs{{Component: "kubernetes", Names: kubernetes.ProgramNames(in.IsControlPlane())}}}
	}
	programs, images := []string{"kubelet", "kubeadm"}, []component.Image{{Name: "kube-proxy", As: kubeproxy.Image}}
	if in.IsControlPlane() {
		programs = append(programs, "kubectl")
		images = append(images, component.ImagesNamed("kube-apiserver", "kube-controller-manager", "kube-scheduler")...)
	}
	return component.Needs{Programs: []component.Programs{{Component: "kubernetes", Names: programs}}, Images: images}
}

// EtcdNeeds are those of etcd where it runs as a unit, and what its members are managed with.
func EtcdNeeds(in component.Inputs) component.Needs {
	isUnit := in.Target.Cluster.Etcd.Type == spec.EtcdKubexm
	etcd := func(names ...string) []component.Programs {
		return []component.Programs{{Component: "etcd", Names: names}}
	}
	switch {
	case !in.RunsEtcd() && !in.IsControlPlane():
		return component.Needs{}
	case !in.RunsEtcd():
		return component.Needs{Programs: etcd("etcdctl")} // to save a snapshot of an etcd that runs elsewhere
	case isUnit:
		return component.Needs{Programs: etcd("etcd", "etcdctl", "etcdutl")}
	}
	return component.Needs{Programs: etcd("etcdctl"), Images: component.ImagesNamed("etcd")}
}

// LocalProxyNeeds are those of a worker's own load balancer.
func LocalProxyNeeds(in component.Inputs) component.Needs {
	if e := in.Target.Cluster.ControlPlaneEndpoint; e.IsLocal() && in.IsNode() && !in.IsControlPlane() {
		return component.Needs{Images: component.ImagesNamed(string(e.Internal))}
	}
	return component.Needs{}
}

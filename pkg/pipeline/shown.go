// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Shown is what a cluster's API shows of its control plane.
type Shown struct {
	// Initialized is the ConfigMap in kube-system that is made last when a control plane begins.
	Initialized string
	// JoinsByKubeadm: it has what "kubeadm join" reads.
	JoinsByKubeadm bool
	// Components are those of each host.
	Components []ShownComponent
}

// ShownComponent is one of a control plane host's components. The API shows a static pod, under the name of the component and that of
// the Node, and nothing of a unit.
type ShownComponent struct {
	Name  string
	IsPod bool
}

// ShownOf is what is shown of a cluster of this kind.
func ShownOf(c spec.Cluster) (Shown, error) {
	in, err := module.NewInstalled(spec.Target{Cluster: c})
	if err != nil {
		return Shown{}, err
	}
	s := Shown{Initialized: in.Kubernetes.Initialized(), JoinsByKubeadm: in.Kubernetes.JoinsByKubeadm()}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		s.Components = append(s.Components, ShownComponent{name, in.Kubernetes.ArePods()})
	}
	if c.Etcd.IsStacked() {
		s.Components = append(s.Components, ShownComponent{"etcd", in.Etcd.IsPod()})
	}
	return s, nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import "runtime"

// Plane are the paths of the programs of an API server on this machine, as controller-runtime's envtest takes them
// (ControlPlane.APIServer.Path, ControlPlane.Etcd.Path, ControlPlane.KubectlPath).
type Plane struct {
	APIServer string
	Etcd      string
	Kubectl   string
}

// Plane finds the programs for this machine's architecture.
func (b *Bundle) Plane() (Plane, error) {
	var p Plane
	for _, want := range []struct {
		component, name string
		path            *string
	}{
		{Kubernetes, "kube-apiserver", &p.APIServer},
		{"etcd", "etcd", &p.Etcd},
		{Kubernetes, "kubectl", &p.Kubectl},
	} {
		f, err := b.Binary(want.component, "", runtime.GOARCH, want.name)
		if err != nil {
			return Plane{}, err
		}
		*want.path = f.Path
	}
	return p, nil
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeproxy_test

import (
	"path/filepath"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func TestManifest(t *testing.T) {
	for name, change := range map[string]func(*spec.Cluster){
		"iptables": func(*spec.Cluster) {},
		"ipvs": func(c *spec.Cluster) {
			c.Kubernetes.Proxy = spec.Proxy{Mode: spec.ProxyIPVS, Masquerade: spec.MasqueradeAll, IPVS: spec.IPVS{ExcludeCIDRs: []string{"10.9.0.0/16"}}}
			c.Kubernetes.FeatureGates = []spec.FeatureGate{{Name: "A", State: spec.FeatureDisabled}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Address: "10.0.0.1"}}
			change(&c)
			c.Default()
			s, ok := kubeproxy.Deploy(c, false, graph.Output[string]{Name: "api"}).(step.Sequence)
			if !ok {
				t.Fatal("not a sequence")
			}
			got := s.Parts[0].(step.Apply).Manifest.String()
			golden.File(t, filepath.Join("testdata", name+".yaml"), got)
		})
	}
}

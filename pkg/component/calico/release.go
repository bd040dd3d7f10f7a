// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package calico

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// released: the release is in the cluster, and with it the kinds of Calico's objects.
var released = graph.Output[string]{Name: "calico-released"}

// variable is an environment variable of a container.
type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// release installs the chart, with images by their full references. It is what upstream's own manifests are made of.
func release(n spec.Network, chart step.Artifact, node, plugin, controllers string) step.Step {
	mtu := strconv.Itoa(int(n.Calico.VethMTU))
	// Images are a name each, and one version.
	name := func(ref string) map[string]any { return map[string]any{"image": ref[:strings.LastIndex(ref, ":")]} }
	onNode := name(node)
	onNode["env"] = []variable{
		{"NO_DEFAULT_POOLS", "true"}, // they are declared
		// The address that the host is declared with; calico's own choice is the first interface that it finds.
		{"IP_AUTODETECTION_METHOD", "kubernetes-internal-ip"},
		// Containers read a ConfigMap when they start: another MTU is to be another Pod.
		{"KUBEXM_VETH_MTU", mtu},
	}
	values := map[string]any{
		"network": "calico", "datastore": "kubernetes", "vxlan": true,
		// Helm has them in place before all else, and keeps them when the release goes.
		"includeCRDs": false,
		"mtu":         mtu,
		"version":     node[strings.LastIndex(node, ":")+1:],
		"node":        onNode, "cni": name(plugin), "kubeControllers": name(controllers),
		"typha": map[string]any{"enabled": false}, "bpf": false, "flannel_migration": false,
	}
	// A map of strings and numbers always marshals.
	text, _ := yaml.Marshal(values)
	return step.New(step.Meta{
		Name: "calico/release", Description: "install the pod network", Timeout: step.Duration(3 * time.Minute),
		Retry: step.Retry{Attempts: 3, Delay: step.Duration(3 * time.Second)}, Makes: []string{released.Name},
	}, step.Release{
		Name: releaseName, Namespace: namespace, Chart: chart, Values: step.Literal(string(text)),
		After: []string{component.APIAnswers.Name},
	})
}

// pool is the pods' network, of which hosts get blocks.
const pool = `apiVersion: crd.projectcalico.org/v1
kind: IPPool
metadata:
  name: default-ipv4-ippool
spec:
  cidr: %s
  blockSize: %d
  ipipMode: %s
  vxlanMode: %s
  natOutgoing: true
  nodeSelector: all()
  allowedUses: [Workload, Tunnel]
`

// pools declares where pods get addresses from.
func pools(n spec.Network) step.Step {
	text := fmt.Sprintf(pool, n.PodCIDR(spec.IPv4), n.Calico.BlockSize, n.Calico.IPIPMode, n.Calico.VXLANMode)
	return step.New(step.Meta{
		Name: "calico/pools", Description: "declare the pods' network", Timeout: step.Duration(time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(2 * time.Second)}, Makes: []string{component.NetworkDeployed.Name},
	}, step.Apply{Title: "pools of pods' addresses", Manifest: step.Literal(text), After: []string{released.Name}})
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flannel holds the step that installs the flannel network by its own Helm chart.
package flannel

import (
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Settings of the network.
type Settings struct {
	Network spec.Network
	Chart   step.Artifact
	// Image and PluginImage are full references.
	Image, PluginImage string
	// After must be there first; Done is made when the release is deployed.
	After, Done graph.Output[string]
}

// Namespace of the release, and DaemonSet, of which a Pod on each Node carries packets.
const (
	Namespace = "kube-flannel"
	DaemonSet = "kube-flannel-ds"
)

// Release installs the chart.
func Release(s Settings) step.Step {
	flannel := map[string]any{
		"image":       split(s.Image),
		"flannel_cni": map[string]any{"image": split(s.PluginImage)},
		"backend":     string(s.Network.Flannel.Backend),
	}
	if s.Network.Flannel.MTU != 0 {
		flannel["mtu"] = s.Network.Flannel.MTU
	}
	chart := map[string]any{"podCidr": s.Network.PodCIDR(spec.IPv4), "flannel": flannel}
	if cidr := s.Network.PodCIDR(spec.IPv6); cidr != "" {
		chart["podCidrv6"] = cidr
		// The plugin in the bundle knows IPv4 alone: pods' addresses come by cni.Template.
		flannel["skipCNIConfigInstallation"] = true
	}
	// A map of strings and numbers always marshals.
	values, _ := yaml.Marshal(chart)
	return step.New(step.Meta{
		Name: "flannel/release", Description: "install the pod network", Timeout: step.Duration(3 * time.Minute),
		Retry: step.Retry{Attempts: 3, Delay: step.Duration(3 * time.Second)}, Makes: []string{s.Done.Name},
	}, step.Release{Name: "flannel", Namespace: Namespace, Chart: s.Chart, Values: step.Literal(string(values)), After: []string{s.After.Name}})
}

func split(ref string) map[string]string {
	at := strings.LastIndex(ref, ":")
	return map[string]string{"repository": ref[:at], "tag": ref[at+1:]}
}

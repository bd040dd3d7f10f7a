// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package flannel

import (
	_ "embed"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// conflist is the chart's own configuration of pods' networks, but for the MTU of pods' interfaces.
//
//go:embed cni.conflist
var conflist string

// backends are what flannel calls them.
var backends = map[spec.FlannelBackend]string{spec.FlannelVXLAN: "vxlan", spec.FlannelHostGW: "host-gw"}

// release installs the chart, with images by their full references.
func release(n spec.Network, chart step.Artifact, image, pluginImage string) step.Step {
	settings := map[string]any{
		"image":       split(image),
		"flannel_cni": map[string]any{"image": split(pluginImage)},
		"backend":     backends[n.Flannel.Backend],
	}
	if address := amongHosts(n); address != "" {
		// The chart's own, and the interface by which this is reached instead of the one with the default route.
		settings["args"] = []string{"--ip-masq", "--kube-subnet-mgr", "--iface-can-reach=" + address}
	}
	if mtu := n.Flannel.MTU; mtu != 0 {
		// The chart's own value is that of what carries packets with VXLAN, and nothing with host-gw.
		settings["cniConf"] = strings.Replace(conflist, "$MTU", strconv.Itoa(int(mtu)), 1)
	}
	values := map[string]any{"podCidr": n.PodCIDR(spec.IPv4), "flannel": settings}
	if cidr := n.PodCIDR(spec.IPv6); cidr != "" {
		values["podCidrv6"] = cidr
		// The plugin in the bundle knows IPv4 alone: pods' addresses come by cni.Template.
		settings["skipCNIConfigInstallation"] = true
	}
	// A map of strings and numbers always marshals.
	text, _ := yaml.Marshal(values)
	return step.New(step.Meta{
		Name: "flannel/release", Description: "install the pod network", Timeout: step.Duration(3 * time.Minute),
		Retry: step.Retry{Attempts: 3, Delay: step.Duration(3 * time.Second)}, Makes: []string{component.NetworkDeployed.Name},
	}, step.Release{
		Name: releaseName, Namespace: namespace, Chart: chart, Values: step.Literal(string(text)),
		After: []string{component.APIAnswers.Name},
	})
}

// amongHosts is an address of IPv4 in the first network in which hosts reach each other, "" where none is declared. It is the network's
// own, which no host has: a host reaches its own address by its loopback interface.
func amongHosts(n spec.Network) string {
	for _, cidr := range n.HostCIDRs {
		if prefix, err := netip.ParsePrefix(cidr); err == nil && prefix.Addr().Is4() {
			return prefix.Addr().String()
		}
	}
	return ""
}

func split(ref string) map[string]string {
	at := strings.LastIndex(ref, ":")
	return map[string]string{"repository": ref[:at], "tag": ref[at+1:]}
}

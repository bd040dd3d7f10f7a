// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coredns gives Services their names by CoreDNS.
package coredns

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

//go:embed manifest.yaml
var manifest string

// Settings of the cluster's DNS server.
type Settings struct {
	DNS spec.DNS
	// Image is a full reference.
	Image string
	// Addresses are the Service's cluster IPs: one, or one of each family in a dual stack cluster.
	Addresses []string
	// HostForwards says that hosts have name servers that pods can reach, so that names outside of the cluster are asked of
	// them where the user names no others.
	HostForwards bool
	// KeepsCorefile leaves the Corefile that the cluster has as it is.
	KeepsCorefile bool
	// After must be there first.
	After graph.Output[string]
}

// Deploy makes the cluster's DNS server, with the names and labels that every kubeadm cluster has.
func Deploy(s Settings) step.Step {
	// A map of strings always marshals.
	config, _ := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "coredns", "namespace": "kube-system"},
		"data":     map[string]any{"Corefile": corefile(s.DNS, s.HostForwards)},
	})
	objects := strings.NewReplacer("$IMAGE", s.Image, "$ADDRESS", clusterIPs(s.Addresses)).Replace(manifest)
	if !s.KeepsCorefile {
		objects = string(config) + "---\n" + objects
	}
	return step.New(step.Meta{
		Name: "coredns/deploy", Description: "deploy the cluster's DNS server", Timeout: step.Duration(time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(time.Second), MaxDelay: step.Duration(10 * time.Second)},
	}, step.Apply{Title: "CoreDNS", Manifest: step.Literal(objects), After: []string{s.After.Name}})
}

// clusterIPs is the value of the Service's clusterIP, with the fields behind it that dual stack needs.
func clusterIPs(addresses []string) string {
	if len(addresses) == 1 {
		return addresses[0]
	}
	return fmt.Sprintf("%q\n  clusterIPs: [%q, %q]\n  ipFamilyPolicy: PreferDualStack", addresses[0], addresses[0], addresses[1])
}

// corefile renders external zones first, then the cluster's server block.
func corefile(dns spec.DNS, hostForwards bool) string {
	var b strings.Builder
	for _, z := range dns.CoreDNS.ExternalZones {
		block(&b, strings.Join(z.Zones, " "), func(line func(format string, args ...any)) {
			line("log")
			line("errors")
			for _, r := range z.Rewrite {
				line("rewrite %s", r)
			}
			line("forward . %s", strings.Join(z.Nameservers, " "))
			line("loadbalance")
			line("cache %d", z.CacheSeconds)
			line("reload")
			etcHosts(line, dns.EtcHosts)
		})
	}
	block(&b, ".:53", func(line func(format string, args ...any)) {
		lines(line, dns.CoreDNS.AdditionalConfigs)
		line("errors")
		line("health {\n    lameduck 5s\n}")
		lines(line, dns.CoreDNS.RewriteBlock)
		line("ready")
		line("kubernetes %s in-addr.arpa ip6.arpa {\n    pods insecure\n    fallthrough in-addr.arpa ip6.arpa\n    ttl 30\n}", dns.ClusterDomain)
		etcHosts(line, dns.EtcHosts)
		line("prometheus :9153")
		switch {
		case len(dns.CoreDNS.UpstreamServers) > 0:
			line("forward . %s {\n    max_concurrent 1000\n    prefer_udp\n}", strings.Join(dns.CoreDNS.UpstreamServers, " "))
		case hostForwards:
			line("forward . /etc/resolv.conf {\n    max_concurrent 1000\n}")
		}
		line("cache 30 {\n    disable success %s\n    disable denial %s\n}", dns.ClusterDomain, dns.ClusterDomain)
		line("loop")
		line("reload")
		line("loadbalance")
	})
	return b.String()
}

func block(b *strings.Builder, zones string, body func(line func(format string, args ...any))) {
	fmt.Fprintf(b, "%s {\n", zones)
	body(func(format string, args ...any) {
		for l := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
			fmt.Fprintf(b, "    %s\n", l)
		}
	})
	b.WriteString("}\n")
}

func lines(line func(format string, args ...any), text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		line("%s", text)
	}
}

func etcHosts(line func(format string, args ...any), entries []spec.HostEntry) {
	if len(entries) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("hosts {\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "    %s %s\n", e.Address, strings.Join(e.Hostnames, " "))
	}
	b.WriteString("    fallthrough\n}")
	line("%s", b.String())
}

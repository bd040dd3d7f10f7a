// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// alias is another spelling of a field. Paths are below spec; name[] means each item of a list. Rows apply in order.
type alias struct {
	from, to string
	// convert makes the field's form of the node; nil if it cannot, with the problem recorded.
	convert func(*tree, *yaml.Node) *yaml.Node
}

var aliases = []alias{
	{from: "roleGroups.master", to: "roleGroups.control-plane"},
	{from: "hosts[].internalAddress", to: "hosts[].internalAddresses", convert: commaList},
	{from: "proxyJump", to: "proxyJump", convert: jumpOrNone},
	{from: "hosts[].proxyJump", to: "hosts[].proxyJump", convert: jumpOrNone},

	{from: "controlPlaneEndpoint.lb_address", to: "controlPlaneEndpoint.address"},
	{from: "controlPlaneEndpoint.vip", to: "controlPlaneEndpoint.address"},
	{from: "controlPlaneEndpoint.externalLoadBalancer", to: "controlPlaneEndpoint.external"},
	{from: "controlPlaneEndpoint.external", to: "controlPlaneEndpoint.external", convert: ownLoadBalancer},
	{from: "controlPlaneEndpoint.internalLoadbalancer", to: "controlPlaneEndpoint.internal"},
	{from: "controlPlaneEndpoint.internalLoadBalancer", to: "controlPlaneEndpoint.internal"},
	{from: "controlPlaneEndpoint.externalDNS", to: "controlPlaneEndpoint.domainResolution", convert: oneOfTwo("ExternalDNS", "HostsFile")},

	{from: "etcd.heartbeatInterval", to: "etcd.heartbeatIntervalMilliseconds"},
	{from: "etcd.electionTimeout", to: "etcd.electionTimeoutMilliseconds"},
	{from: "etcd.autoCompactionRetention", to: "etcd.autoCompactionRetentionHours", convert: unlessZero},
	{from: "etcd.maxWals", to: "etcd.maxWALs"},
	{from: "etcd.backupDir", to: "etcd.backup.directory"},
	{from: "etcd.backupPeriodHours", to: "etcd.backup.schedule", convert: everyHours},
	{from: "etcd.keepBackupNumber", to: "etcd.backup.keep"},

	{from: "addons", to: "addons", convert: addonList},

	{from: "system.debs", to: "system.packages.debs"},
	{from: "system.rpms", to: "system.packages.rpms"},
	{from: "host", to: "system.etcHosts"},
	{from: "extra.hosts", to: "system.etcHosts", convert: domainList},
	{from: "system.etcHosts", to: "system.etcHosts", convert: hostsFile},

	{from: "kubernetes.containerRuntime", to: "containerRuntime"},
	{from: "containerRuntime.containerd.registryMirrors", to: "containerRuntime.registries.mirrors", convert: dockerMirrors},
	{from: "containerRuntime.containerd.insecureRegistries", to: "containerRuntime.registries.insecure", convert: commaList},
	{from: "registry.containerdDataDir", to: "containerRuntime.dataDir"},
	{from: "containerRuntime.registries.mirrors", to: "containerRuntime.registries.mirrors", convert: keyed("registry", "endpoints")},

	{from: "kubernetes.apiserverCertExtraSans", to: "kubernetes.apiServer.certSANs"},
	{from: "kubernetes.kubeletArgs", to: "kubernetes.kubelet.extraArgs", convert: flagList},
	{from: "kubernetes.maxPods", to: "kubernetes.kubelet.maxPods"},
	{from: "kubernetes.podPidsLimit", to: "kubernetes.kubelet.podPidsLimit"},
	{from: "kubernetes.nodeCidrMaskSize", to: "kubernetes.nodeCIDRMaskSize"},
	{from: "kubernetes.proxyMode", to: "kubernetes.proxy.mode"},
	{from: "kubernetes.masqueradeAll", to: "kubernetes.proxy.masquerade", convert: oneOfTwo("All", "OffCluster")},
	{from: "kubernetes.kubeProxyConfiguration.ipvs.excludeCIDRs", to: "kubernetes.proxy.ipvs.excludeCIDRs"},
	{from: "kubernetes.autoRenewCerts", to: "certificates.renewal", convert: oneOfTwo("Automatic", "Manual")},
	{from: "kubernetes.featureGates", to: "kubernetes.featureGates", convert: gateList},
	{from: "kubernetes.clusterName", to: "dns.clusterDomain"},

	{from: "network.kubePodsCIDR", to: "network.podCIDRs", convert: commaList},
	{from: "network.kubeServiceCIDR", to: "network.serviceCIDRs", convert: commaList},
	{from: "network.calico.vethMTU", to: "network.calico.vethMTU", convert: unlessZero},
	{from: "network.ippool.blockSize", to: "network.calico.blockSize"},

	{from: "dns.dnsEtcHosts", to: "dns.etcHosts"},
	{from: "dns.etcHosts", to: "dns.etcHosts", convert: hostsFile},
	{from: "dns.coredns", to: "dns.coreDNS"},
	{from: "dns.coreDNS.externalZones[].cache", to: "dns.coreDNS.externalZones[].cacheSeconds"},
	{from: "dns.coreDNS.upstreamDNSServers", to: "dns.coreDNS.upstreamServers"},
}

// resolveAliases gives every field below spec its own spelling.
func (t *tree) resolveAliases(body *yaml.Node) {
	for _, row := range aliases {
		t.resolve(body, strings.Split(row.from, "."), strings.Split(row.to, "."), row.convert)
	}
}

func (t *tree) resolve(scope *yaml.Node, from, to []string, convert func(*tree, *yaml.Node) *yaml.Node) {
	for len(from) > 1 && from[0] == to[0] {
		name, isList := strings.CutSuffix(from[0], "[]")
		scope, from, to = child(scope, name), from[1:], to[1:]
		if isList && scope != nil && scope.Kind == yaml.SequenceNode {
			for _, item := range scope.Content {
				t.resolve(item, from, to, convert)
			}
			return
		}
	}
	node := take(scope, from)
	if node == nil {
		return
	}
	if convert != nil && !isNull(node) {
		if node = convert(t, node); node == nil {
			return
		}
	}
	t.put(scope, to, node)
}

// commaList makes a list of a text with commas.
func commaList(t *tree, node *yaml.Node) *yaml.Node {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		return node
	}
	list := t.derive(node, yaml.SequenceNode)
	for item := range strings.SplitSeq(node.Value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list.Content = append(list.Content, t.text(node, item))
		}
	}
	return list
}

// addonList makes addons of names.
func addonList(t *tree, node *yaml.Node) *yaml.Node {
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		return unlessOff(node)
	}
	for i, item := range node.Content {
		if item.Kind == yaml.ScalarNode {
			node.Content[i] = t.derive(item, yaml.MappingNode, t.text(item, "name"), item)
		}
	}
	return node
}

// unlessOff leaves out what asks for nothing.
func unlessOff(node *yaml.Node) *yaml.Node {
	if isOff(node) {
		return nil
	}
	return node
}

// dockerMirrors makes mirrors of docker.io of one or more hosts or URLs.
func dockerMirrors(t *tree, node *yaml.Node) *yaml.Node {
	list := commaList(t, node)
	if list.Kind != yaml.SequenceNode {
		t.refuse(node, "use a list of mirrors of docker.io, such as [https://registry.prod.example]")
		return nil
	}
	if len(list.Content) == 0 {
		return nil
	}
	for _, item := range list.Content {
		if item.Kind == yaml.ScalarNode && !strings.Contains(item.Value, "://") {
			item.Value = "https://" + item.Value
		}
	}
	mirror := t.derive(node, yaml.MappingNode, t.text(node, "registry"), t.text(node, "docker.io"), t.text(node, "endpoints"), list)
	return t.derive(node, yaml.SequenceNode, mirror)
}

// keyed makes a list of objects with two fields of a mapping.
func keyed(key, value string) func(*tree, *yaml.Node) *yaml.Node {
	return func(t *tree, node *yaml.Node) *yaml.Node {
		if node.Kind != yaml.MappingNode {
			return node
		}
		list := t.derive(node, yaml.SequenceNode)
		for i := 0; i+1 < len(node.Content); i += 2 {
			of := node.Content[i+1]
			list.Content = append(list.Content, t.derive(of, yaml.MappingNode,
				t.text(of, key), t.text(of, node.Content[i].Value), t.text(of, value), of))
		}
		return list
	}
}

// gateList makes a list of feature gates of a mapping with booleans.
func gateList(t *tree, node *yaml.Node) *yaml.Node {
	list := keyed("name", "state")(t, node)
	if list == node {
		return node
	}
	for _, gate := range list.Content {
		state := oneOfTwo("Enabled", "Disabled")(t, gate.Content[3])
		if state == nil {
			return nil
		}
		gate.Content[3] = state
	}
	return list
}

// oneOfTwo makes a word of a boolean.
func oneOfTwo(yes, no string) func(*tree, *yaml.Node) *yaml.Node {
	return func(t *tree, node *yaml.Node) *yaml.Node {
		var on bool
		if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" || node.Decode(&on) != nil {
			t.refuse(node, "use true or false")
			return nil
		}
		if on {
			return t.text(node, yes)
		}
		return t.text(node, no)
	}
}

// ownLoadBalancer gives the older name of load balancers on hosts of their own its newer one.
func ownLoadBalancer(t *tree, node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.ScalarNode && node.Value == "kubexm" {
		return t.text(node, "kubexm-kh")
	}
	return node
}

// everyHours makes a schedule of a number of hours, by which a day can be divided.
func everyHours(t *tree, node *yaml.Node) *yaml.Node {
	hours, err := strconv.Atoi(node.Value)
	switch {
	case node.Kind == yaml.ScalarNode && err == nil && hours == 0:
		return nil
	case node.Kind == yaml.ScalarNode && err == nil && hours == 24:
		return t.text(node, "0 0 * * *")
	case node.Kind == yaml.ScalarNode && err == nil && hours == 1:
		return t.text(node, "0 * * * *")
	case node.Kind == yaml.ScalarNode && err == nil && hours > 0 && hours < 24 && 24%hours == 0:
		return t.text(node, fmt.Sprintf("0 */%d * * *", hours))
	}
	t.refuse(node, "use hours by which a day can be divided (1, 2, 3, 4, 6, 8, 12 or 24), or etcd.backup.schedule, such as 0 3 * * *")
	return nil
}

// unlessZero leaves a number out that turns off what is off when it is left out.
func unlessZero(_ *tree, node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.ScalarNode && node.Value == "0" {
		return nil
	}
	return node
}

var flagSyntax = regexp.MustCompile(`^--([^=]+)=(.+)$`)

// flagList makes extraArgs of flags as a command line has them.
func flagList(t *tree, node *yaml.Node) *yaml.Node {
	if node.Kind != yaml.SequenceNode {
		t.refuse(node, "use a list of flags, such as [--v=2]")
		return nil
	}
	list := t.derive(node, yaml.SequenceNode)
	for _, item := range node.Content {
		parts := flagSyntax.FindStringSubmatch(item.Value)
		if item.Kind != yaml.ScalarNode || parts == nil {
			t.refuse(item, "write a flag as --name=value")
			continue
		}
		list.Content = append(list.Content, t.derive(item, yaml.MappingNode,
			t.text(item, "name"), t.text(item, parts[1]), t.text(item, "value"), t.text(item, parts[2])))
	}
	return list
}

// hostsFile makes entries of the text of a hosts file; lines of one address are joined.
func hostsFile(t *tree, node *yaml.Node) *yaml.Node {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		return node
	}
	entries := &entryList{tree: t, list: t.derive(node, yaml.SequenceNode)}
	for line := range strings.Lines(node.Value) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if _, err := netip.ParseAddr(words[0]); err != nil || len(words) < 2 {
			t.refuse(node, "%q is not a line of a hosts file: write an IP address and its names, such as 192.168.0.100 api.example.com", line)
			return nil
		}
		for _, name := range words[1:] {
			entries.add(node, t.text(node, words[0]), t.text(node, name))
		}
	}
	return entries.list
}

// domainList makes entries of a list of {domain, address}.
func domainList(t *tree, node *yaml.Node) *yaml.Node {
	const form = "use a list of {domain, address}, such as [{domain: api.example.com, address: 192.168.0.100}]"
	if node.Kind != yaml.SequenceNode {
		t.refuse(node, form)
		return nil
	}
	entries := &entryList{tree: t, list: t.derive(node, yaml.SequenceNode)}
	for _, item := range node.Content {
		domain, address := child(item, "domain"), child(item, "address")
		if domain == nil || address == nil || len(item.Content) != 4 {
			t.refuse(item, form)
			continue
		}
		entries.add(item, address, domain)
	}
	return entries.list
}

// entryList collects the names of each address.
type entryList struct {
	tree *tree
	list *yaml.Node
}

func (e *entryList) add(from, address, name *yaml.Node) {
	for _, entry := range e.list.Content {
		if child(entry, "address").Value == address.Value {
			names := child(entry, "hostnames")
			names.Content = append(names.Content, name)
			return
		}
	}
	e.list.Content = append(e.list.Content, e.tree.derive(from, yaml.MappingNode,
		e.tree.text(from, "address"), address,
		e.tree.text(from, "hostnames"), e.tree.derive(from, yaml.SequenceNode, name)))
}

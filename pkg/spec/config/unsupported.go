// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const notYet = "known, but not supported yet by this version of kubexm"

// unsupported are fields of a config file that this version cannot honour, by their paths below spec after aliases, each
// with what to do. One that is there and turned off (empty, false) is honoured by leaving it out.
var unsupported = []struct{ path, remedy string }{
	{"system.ntpServers", "remove it, and keep the hosts' clocks in step by other means"},
	{"system.timezone", "remove it"},

	{"kubernetes.kata", "remove it"},
	{"kubernetes.nodeFeatureDiscovery", "remove it"},
	{"kubernetes.kubeProxyConfiguration", "remove all of it but ipvs.excludeCIDRs"},

	{"containerRuntime.version", "remove it; the artifact bundle says which version is installed"},
	{"containerRuntime.containerd.version", "remove it; the artifact bundle says which version is installed"},

	{"network.cilium", "remove it"},

	{"dns.nodelocaldns", "remove it"},
	{"dns.nodeLocal", "remove it"},

	{"storage.openebs", "remove it"},

	{"registry.type", "remove it"},
	{"registry.privateRegistry", "remove it"},
	{"registry.namespaceOverride", "remove it"},
	{"registry.auths", "remove it"},
	{"registry.dockerDataDir", "remove it"},
	{"registry.registryDataDir", "remove it"},

	{"extra.resolves", "remove it, and set the hosts' name servers by other means"},
	{"extra.etcdresolve", "remove it, and set the hosts' name servers by other means"},
}

// unsupportedValues are values of supported fields that this version cannot honour, by the field's path below spec.
var unsupportedValues = []struct{ path, values, remedy string }{
	{"containerRuntime.type", "docker isula isulad", "use containerd or cri-o"},
	{"network.plugin", "cilium", "use flannel or calico, or none and install it yourself"},
}

// refuseUnsupported refuses what is known and cannot be honoured, by name, and takes it out of the tree.
func (t *tree) refuseUnsupported(spec *yaml.Node) {
	for _, row := range unsupported {
		if node := take(spec, strings.Split(row.path, ".")); node != nil && !isOff(node) {
			t.refuse(node, "%s; %s", notYet, row.remedy)
		}
	}
	for _, row := range unsupportedValues {
		path := strings.Split(row.path, ".")
		node := spec
		for _, name := range path {
			node = child(node, name)
		}
		if node == nil || node.Kind != yaml.ScalarNode {
			continue
		}
		for value := range strings.FieldsSeq(row.values) {
			if strings.EqualFold(node.Value, value) {
				t.refuse(node, "%q is %s; %s", node.Value, notYet, row.remedy)
				take(spec, path)
			}
		}
	}
}

// isOff reports whether a node asks for nothing: empty, false, or a mapping of such.
func isOff(node *yaml.Node) bool {
	switch node.Kind {
	case yaml.ScalarNode:
		return isNull(node) || node.Value == "" || node.Tag == "!!bool" && strings.EqualFold(node.Value, "false")
	case yaml.SequenceNode:
		return len(node.Content) == 0
	case yaml.MappingNode:
		for i := 1; i < len(node.Content); i += 2 {
			if !isOff(node.Content[i]) {
				return false
			}
		}
		return true
	}
	return false
}

// refuseOtherRuntimes refuses what is said of containerd where the runtime is another.
func (t *tree) refuseOtherRuntimes(body *yaml.Node) {
	runtime := child(body, "containerRuntime")
	if runtime == nil {
		runtime = child(child(body, "kubernetes"), "containerRuntime")
	}
	kind := child(runtime, "type")
	if kind == nil || kind.Value == Word(spec.ContainerRuntimeContainerd) {
		return
	}
	if node := take(runtime, []string{"containerd"}); node != nil && !isOff(node) {
		t.refuse(node, "Forbidden: the runtime is %s: remove it; mirrors and insecure registries of either are containerRuntime.registries", kind.Value)
	}
	if node := take(body, []string{"registry", "containerdDataDir"}); node != nil && !isOff(node) {
		t.refuse(node, "Forbidden: the runtime is %s: remove it, and set containerRuntime.dataDir", kind.Value)
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// balancer is a load balancer by the name that a config file has for it.
type balancer struct {
	file  string
	of    spec.LoadBalancerType
	proxy spec.LoadBalancerProxy
}

// External load balancers are outside of the Nodes, internal ones on them.
var (
	externalBalancers = []balancer{
		{"external", spec.LoadBalancerExternal, ""},
		{"kubexm-kh", spec.LoadBalancerKeepalived, spec.LoadBalancerHAProxy},
		{"kubexm-kn", spec.LoadBalancerKeepalived, spec.LoadBalancerNginx},
	}
	internalBalancers = []balancer{
		{"haproxy", spec.LoadBalancerNodeLocal, spec.LoadBalancerHAProxy},
		{"kube-vip", spec.LoadBalancerKubeVIP, ""},
		{"nginx", spec.LoadBalancerNodeLocal, spec.LoadBalancerNginx},
	}
)

// balancerFields are those of a file's controlPlaneEndpoint that become spec.Cluster's loadBalancer.
func balancerFields() []string {
	return []string{"external", "internal", "hosts", "keepalived.interface", "keepalived.virtualRouterID", "kubeVIP.image", "kubeVIP.interface"}
}

// resolveLoadBalancer makes spec.Cluster's loadBalancer of what a file's controlPlaneEndpoint says of it.
func (t *tree) resolveLoadBalancer(body *yaml.Node) {
	if node := take(body, []string{"loadBalancer"}); node != nil {
		t.refuse(node, "unknown field: set controlPlaneEndpoint.external or internal")
	}
	endpoint := child(body, "controlPlaneEndpoint")
	if endpoint == nil || endpoint.Kind != yaml.MappingNode {
		return
	}
	all := t.derive(endpoint, yaml.MappingNode)
	external, internal := take(endpoint, []string{"external"}), take(endpoint, []string{"internal"})
	for name, node := range map[string]*yaml.Node{"external": external, "internal": internal} {
		if node != nil {
			t.decoded["spec.controlPlaneEndpoint."+name] = t.places[node]
		}
	}
	parts := map[string]*yaml.Node{}
	for _, part := range []string{"keepalived", "kubeVIP"} {
		node := take(endpoint, []string{part})
		for _, name := range []string{"proxy", "hosts"} {
			if other := take(node, []string{name}); other != nil {
				t.refuse(other, "unknown field")
			}
		}
		if node != nil {
			parts[part] = node
		}
	}
	put := func(part, name string, value *yaml.Node) {
		if parts[part] == nil {
			parts[part] = t.derive(value, yaml.MappingNode)
		}
		if parts[part].Kind == yaml.MappingNode { // decode refuses what is none
			parts[part].Content = append(parts[part].Content, t.text(value, name), value)
		}
	}
	if hosts := take(endpoint, []string{"hosts"}); hosts != nil {
		put("keepalived", "hosts", hosts)
	}
	chosen, from := t.balancer(external, externalBalancers), external
	if other := t.balancer(internal, internalBalancers); chosen == nil {
		chosen, from = other, internal
	} else if other != nil {
		t.refuse(internal, "Forbidden: a cluster has one load balancer, and %s is another: remove one of them", t.places[external].path)
	}
	if chosen != nil {
		all.Content = append(all.Content, t.text(from, "type"), t.text(from, string(chosen.of)))
	}
	if chosen != nil && chosen.proxy != "" {
		part := "nodeLocal"
		if chosen.of == spec.LoadBalancerKeepalived {
			part = "keepalived"
		}
		put(part, "proxy", t.text(from, string(chosen.proxy)))
	}
	for _, part := range []string{"keepalived", "kubeVIP", "nodeLocal"} {
		if parts[part] != nil {
			all.Content = append(all.Content, t.text(parts[part], part), parts[part])
		}
	}
	if len(all.Content) > 0 {
		body.Content = append(body.Content, t.text(endpoint, "loadBalancer"), all)
	}
}

func isSet(node *yaml.Node) bool { return node != nil && !isOff(node) }

// balancer is the one that a node names, nil if it names none.
func (t *tree) balancer(node *yaml.Node, known []balancer) *balancer {
	if !isSet(node) {
		return nil
	}
	if i := slices.IndexFunc(known, func(b balancer) bool { return b.file == node.Value }); i >= 0 && node.Kind == yaml.ScalarNode {
		return &known[i]
	}
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		t.refuse(node, "use a text")
		return nil
	}
	var supported []string
	for _, b := range known {
		supported = append(supported, b.file)
	}
	t.refuse(node, "%s", field.NotSupported(nil, node.Value, supported).ErrorBody())
	return nil
}

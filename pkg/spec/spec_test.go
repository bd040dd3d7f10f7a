// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestRules compares what each value in testdata becomes, or why it is refused, with what the file says. Its commands:
//
//	default cluster|node|target   the value with its defaults
//	validate cluster|node|target  the errors of the value with its defaults
//	update                        the errors of changing the first document to the second
//	merged                        the kubelet and system of a target
//	asked <task>:<step> …         the hooks of a target, and its limits of these steps
func TestRules(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "default":
				value := read(t, d)
				value.Default()
				return dump(t, value)
			case "validate":
				value := read(t, d)
				value.Default()
				return lines(value.Validate(field.NewPath("spec")))
			case "update":
				before, after, _ := strings.Cut(d.Input, "---\n")
				var old, updated spec.Cluster
				decode(t, d.Pos, before, &old)
				decode(t, d.Pos, after, &updated)
				return lines(spec.ValidateUpdate(&old, &updated, 1, field.NewPath("spec")))
			case "merged":
				var target spec.Target
				decode(t, d.Pos, d.Input, &target)
				target.Default()
				untouched := target.DeepCopy()
				merged := dump(t, map[string]any{"kubelet": target.Kubelet(), "system": target.System()})
				if diff := cmp.Diff(untouched, &target); diff != "" {
					t.Errorf("%s: merging changed what it merged: %s", d.Pos, diff)
				}
				return merged
			}
			if d.Cmd == "asked" {
				var target spec.Target
				decode(t, d.Pos, d.Input, &target)
				var out strings.Builder
				for _, h := range target.Hooks() {
					fmt.Fprintf(&out, "%s %s %s: %s\n", h.Name, h.When, h.Task, strings.Join(h.Commands, "; "))
				}
				for _, arg := range d.CmdArgs {
					task, step, _ := strings.Cut(arg.Key, ":")
					fmt.Fprintf(&out, "%s: %+v\n", arg.Key, target.Bounds(task, step))
				}
				return out.String()
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

type value interface {
	Default()
	Validate(*field.Path) field.ErrorList
}

func read(t *testing.T, d *datadriven.TestData) value {
	t.Helper()
	var v value
	switch what := d.CmdArgs[0].Key; what {
	case "cluster":
		v = &spec.Cluster{}
	case "node":
		v = &spec.Node{}
	case "target":
		v = &spec.Target{}
	default:
		t.Fatalf("%s: unknown type %s", d.Pos, what)
	}
	decode(t, d.Pos, d.Input, v)
	return v
}

func decode(t *testing.T, at, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", at, err)
	}
}

func dump(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func lines(errs field.ErrorList) string {
	if len(errs) == 0 {
		return "valid\n"
	}
	var out strings.Builder
	for _, err := range errs {
		fmt.Fprintln(&out, err)
	}
	return out.String()
}

// TestDefaultsAreValidAndFinal holds for a value of which nothing was said.
func TestDefaultsAreValidAndFinal(t *testing.T) {
	for _, v := range []value{&spec.Cluster{}, &spec.Node{}} {
		v.Default()
		once := dump(t, v)
		v.Default()
		if diff := cmp.Diff(once, dump(t, v)); diff != "" {
			t.Errorf("%T: the second Default changes something: %s", v, diff)
		}
		if errs := v.Validate(nil); len(errs) > 0 {
			t.Errorf("%T: its defaults are not valid: %v", v, errs)
		}
	}
}

// TestNothingSaidIsNothingWritten keeps objects of the API free of empty structs.
func TestNothingSaidIsNothingWritten(t *testing.T) {
	for _, v := range []any{spec.Cluster{}, spec.Node{}, spec.Host{}, spec.Target{}} {
		if text, err := json.Marshal(v); err != nil || string(text) != "{}" {
			t.Errorf("%T is written as %s (%v)", v, text, err)
		}
	}
}

// TestUpdateTakesDefaultsForSaid lets a user write down what was so all along.
func TestUpdateTakesDefaultsForSaid(t *testing.T) {
	var said spec.Cluster
	said.Default()
	if errs := spec.ValidateUpdate(&spec.Cluster{}, &said, 1, nil); len(errs) > 0 {
		t.Errorf("defaults written down are refused: %v", errs)
	}
	if errs := spec.ValidateUpdate(&said, &spec.Cluster{}, 1, nil); len(errs) > 0 {
		t.Errorf("defaults left out again are refused: %v", errs)
	}
}

func TestHostAddresses(t *testing.T) {
	host := spec.Host{Name: "a", Address: "203.0.113.7", InternalAddresses: []string{"172.16.0.2", "203.0.113.7"}}
	if got := host.NodeAddress(); got != "172.16.0.2" {
		t.Errorf("the Node's address is %s", got)
	}
	if diff := cmp.Diff([]string{"172.16.0.2", "203.0.113.7"}, host.Addresses()); diff != "" {
		t.Error(diff)
	}
	if alone := (&spec.Host{Address: "172.16.0.3"}).NodeAddress(); alone != "172.16.0.3" {
		t.Errorf("without an internal address, the Node's is %s", alone)
	}
	balancer := spec.Host{Role: spec.RoleLoadBalancer, Address: "203.0.113.7", InternalAddresses: []string{"2001:db8::7", "172.16.0.2"}}
	if got := balancer.NodeAddress(); got != "172.16.0.2" {
		t.Errorf("a load balancer's address is %s", got)
	}
	balancer.InternalAddresses = balancer.InternalAddresses[:1]
	if got := balancer.NodeAddress(); got != "203.0.113.7" {
		t.Errorf("the address of a load balancer without an internal one of IPv4 is %s", got)
	}
}

// TestHostNetworks: of a host's addresses, the networks of the hosts say which are the others', and in which order.
func TestHostNetworks(t *testing.T) {
	addresses := []string{"203.0.113.7", "10.8.0.7", "2001:db8::7", "172.16.0.7", "10.8.0.8", "no address"}
	for name, tt := range map[string]struct {
		network spec.Network
		want    []string
	}{
		"none are declared": {spec.Network{}, []string{"203.0.113.7", "10.8.0.7", "172.16.0.7", "10.8.0.8"}},
		"one":               {spec.Network{HostCIDRs: []string{"10.8.0.0/16"}}, []string{"10.8.0.7", "10.8.0.8"}},
		"two, in their order": {
			spec.Network{HostCIDRs: []string{"172.16.0.0/24", "10.8.0.0/16"}}, []string{"172.16.0.7", "10.8.0.7", "10.8.0.8"},
		},
		"of both families": {
			spec.Network{HostCIDRs: []string{"2001:db8::/64", "172.16.0.0/24"}, PodCIDRs: []string{"10.1.0.0/16", "fd00::/48"}},
			[]string{"172.16.0.7", "2001:db8::7"},
		},
		"one that has none of them": {spec.Network{HostCIDRs: []string{"192.168.0.0/16"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.network.Usable(addresses)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSecondNodeAddress: what the Node's second address is, too, is for the hosts' networks to say.
func TestSecondNodeAddress(t *testing.T) {
	host := spec.Host{Address: "203.0.113.7", InternalAddresses: []string{"2001:db8:1::7", "2001:db8::7", "10.8.0.7"}}
	v6 := spec.Network{PodCIDRs: []string{"fd00::/48", "10.1.0.0/16"}}
	declared := v6
	declared.HostCIDRs = []string{"2001:db8:1::/64", "10.8.0.0/16"}
	others := v6
	others.HostCIDRs = []string{"2001:db8:1::/64", "192.168.0.0/16"}
	for name, tt := range map[string]struct {
		network spec.Network
		found   string
		want    []string
	}{
		"one family":                     {spec.Network{}, "", []string{"2001:db8:1::7"}},
		"none are declared":              {v6, "192.168.0.9", []string{"2001:db8:1::7", "10.8.0.7"}},
		"in a declared one":              {declared, "192.168.0.9", []string{"2001:db8:1::7", "10.8.0.7"}},
		"found in a declared one":        {others, "192.168.0.9", []string{"2001:db8:1::7", "192.168.0.9"}},
		"in none, nor is what was found": {others, "198.51.100.9", []string{"2001:db8:1::7"}},
	} {
		t.Run(name, func(t *testing.T) {
			target := spec.Target{Host: host, Cluster: spec.Cluster{Network: tt.network}}
			if diff := cmp.Diff(tt.want, target.NodeAddresses(tt.found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	for want, endpoint := range map[string]spec.ControlPlaneEndpoint{
		"api.prod.example:6443": {Domain: "api.prod.example", Address: "172.16.0.2", Port: 6443},
		"172.16.0.2:443":        {Address: "172.16.0.2", Port: 443},
	} {
		if got := endpoint.HostPort(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestLoadBalancerComesOnce: a cluster of one control plane host gets a load balancer behind the name that it has, and no other way.
func TestLoadBalancerComesOnce(t *testing.T) {
	const name = "api.prod.example"
	named := spec.ControlPlaneEndpoint{Domain: name, Address: "172.16.0.2"}
	moved := spec.ControlPlaneEndpoint{Domain: name, Address: "172.16.0.100"}
	lbs := spec.Keepalived{Hosts: spec.Hosts{Names: []string{"lb1"}}}
	for _, c := range []struct {
		name     string
		from, to spec.ControlPlaneEndpoint
		was, is  spec.LoadBalancerType
		hosts    int32
		refused  string
	}{
		{"a proxy on workers, behind the name", named, named, "", spec.LoadBalancerNodeLocal, 1, ""},
		{"one that is there, by another address", named, moved, "", spec.LoadBalancerExternal, 1, ""},
		{"the infrastructure's", named, named, "", spec.LoadBalancerInfrastructure, 1, ""},
		{"keepalived, with a virtual address", named, moved, "", spec.LoadBalancerKeepalived, 1, ""},
		{"kube-vip, with a virtual address", named, moved, "", spec.LoadBalancerKubeVIP, 1, ""},
		{"one that is there, at the declared address", spec.ControlPlaneEndpoint{Address: "172.16.0.9"}, spec.ControlPlaneEndpoint{Address: "172.16.0.9"},
			"", spec.LoadBalancerExternal, 1, ""},
		{"for three hosts", named, named, "", spec.LoadBalancerNodeLocal, 3, "spec.loadBalancer.type"},
		{"without a name", spec.ControlPlaneEndpoint{}, spec.ControlPlaneEndpoint{}, "", spec.LoadBalancerNodeLocal, 1, "spec.loadBalancer.type"},
		{"another address without a name", spec.ControlPlaneEndpoint{Address: "172.16.0.2"}, spec.ControlPlaneEndpoint{Address: "172.16.0.100"},
			"", spec.LoadBalancerKubeVIP, 1, "spec.loadBalancer.type"},
		{"by another name", named, spec.ControlPlaneEndpoint{Domain: "b.example", Address: "172.16.0.2"}, "", spec.LoadBalancerNodeLocal, 1,
			"spec.controlPlaneEndpoint.domain"},
		{"none again", named, named, spec.LoadBalancerNodeLocal, spec.LoadBalancerNone, 1, "spec.loadBalancer.type"},
		{"another one", moved, moved, spec.LoadBalancerKubeVIP, spec.LoadBalancerExternal, 1, "spec.loadBalancer.type"},
	} {
		cluster := func(at spec.ControlPlaneEndpoint, by spec.LoadBalancerType) *spec.Cluster {
			made := &spec.Cluster{ControlPlaneEndpoint: at, LoadBalancer: spec.LoadBalancer{Type: by}}
			if by == spec.LoadBalancerKeepalived {
				made.LoadBalancer.Keepalived = lbs
			}
			return made
		}
		errs := spec.ValidateUpdate(cluster(c.from, c.was), cluster(c.to, c.is), c.hosts, field.NewPath("spec"))
		switch {
		case c.refused == "" && len(errs) > 0:
			t.Errorf("%s: %v", c.name, errs)
		case c.refused != "" && (len(errs) != 1 || errs[0].Field != c.refused):
			t.Errorf("%s: %v, want one error of %s", c.name, errs, c.refused)
		}
	}
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// dimensions of what a cluster may be: each way to run Kubernetes, with each etcd, behind each endpoint.
var (
	ways  = []spec.KubernetesType{spec.KubernetesKubeadm, spec.KubernetesKubexm}
	etcds = []struct {
		name string
		set  spec.Etcd
	}{
		{"kubeadm", spec.Etcd{Type: spec.EtcdKubeadm}},
		{"stacked", spec.Etcd{Type: spec.EtcdKubexm}},
		{"dedicated", spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"e1", "e2", "e3"}}}},
		{"external", spec.Etcd{Type: spec.EtcdExternal, External: spec.ExternalEtcd{
			Endpoints: []string{"https://192.168.1.1:2379", "https://192.168.1.2:2379"}, SecretRef: spec.SecretReference{Name: "etcd-client"},
		}}},
	}
	virtual   = spec.ControlPlaneEndpoint{Address: "192.168.0.100"}
	balancers = spec.Hosts{Names: []string{"lb1", "lb2"}}
	endpoints = []struct {
		name string
		set  endpoint
	}{
		{"none", endpoint{spec.ControlPlaneEndpoint{Address: "192.168.0.11"}, spec.LoadBalancer{}}},
		{"kubexm-kh", endpoint{virtual, spec.LoadBalancer{Type: spec.LoadBalancerKeepalived, Keepalived: spec.Keepalived{Hosts: balancers}}}},
		{"kubexm-kn", endpoint{virtual, spec.LoadBalancer{
			Type: spec.LoadBalancerKeepalived, Keepalived: spec.Keepalived{Proxy: spec.LoadBalancerNginx, Hosts: balancers},
		}}},
		{"external", endpoint{
			spec.ControlPlaneEndpoint{Domain: "api.example.com", Address: "192.168.0.200"}, spec.LoadBalancer{Type: spec.LoadBalancerExternal},
		}},
		{"haproxy", endpoint{spec.ControlPlaneEndpoint{}, spec.LoadBalancer{Type: spec.LoadBalancerNodeLocal}}},
		{"nginx", endpoint{spec.ControlPlaneEndpoint{}, spec.LoadBalancer{
			Type: spec.LoadBalancerNodeLocal, NodeLocal: spec.NodeLocal{Proxy: spec.LoadBalancerNginx},
		}}},
		{"kube-vip", endpoint{virtual, spec.LoadBalancer{Type: spec.LoadBalancerKubeVIP}}},
	}
)

// endpoint is where the API server is reached, and by what.
type endpoint struct {
	at spec.ControlPlaneEndpoint
	by spec.LoadBalancer
}

// TestMatrix plans every kind of cluster there is. Its files tell which steps each host takes in which order, and what it waits
// for; what is in the steps is in the other golden files.
func TestMatrix(t *testing.T) {
	b := bundle(t)
	for _, way := range ways {
		for _, etcd := range etcds {
			for _, endpoint := range endpoints {
				name := fmt.Sprintf("%s-%s-%s", config.Word(way), etcd.name, endpoint.name)
				t.Run(name, func(t *testing.T) {
					p, err := pipeline.CreateCluster("prod", members(t, way, etcd.set, endpoint.set), b)
					if err != nil {
						t.Fatal(err)
					}
					golden.File(t, filepath.Join("testdata", "matrix", name+".golden"), outline(p))
					madeOfDedicatedSteps(t, p)
					roundTrip(t, p)
				})
			}
		}
	}
}

// madeOfDedicatedSteps wants each step of a plan to be a component's, with a name of its own, and no generic kind by itself.
func madeOfDedicatedSteps(t *testing.T, p *plan.Plan) {
	t.Helper()
	for i := range p.Graph().Len() {
		n := p.Graph().Node(i).Value
		if _, dedicated := n.Step.(step.Sequence); !dedicated || !strings.Contains(n.Step.Meta().Name, "/") {
			t.Errorf("%s/%s/%s on %q is a generic step: tasks are made of dedicated ones", n.Module, n.Task, n.Name, n.Host)
		}
	}
}

// members are the hosts of a cluster of that kind: one worker, and as many of the others as it needs to be highly available.
func members(t *testing.T, way spec.KubernetesType, etcd spec.Etcd, endpoint endpoint) []pipeline.Node {
	t.Helper()
	roles := map[string]spec.Role{"cp": spec.RoleControlPlane, "e": spec.RoleEtcd, "lb": spec.RoleLoadBalancer, "w": spec.RoleWorker}
	hosts := []string{"lb1", "lb2", "e1", "e2", "e3", "cp1", "cp2", "cp3", "w1"}
	var nodes []pipeline.Node
	for i, name := range hosts {
		role := roles[strings.TrimRight(name, "123")]
		if role == spec.RoleEtcd && etcd.Hosts.IsZero() ||
			role == spec.RoleLoadBalancer && endpoint.by.Type != spec.LoadBalancerKeepalived {
			continue
		}
		address := fmt.Sprintf("192.168.0.%d", i+6)
		sys := machine
		sys.DefaultInterface = "eth0"
		n := node(name, address, role, sys, func(t *spec.Target) {
			t.Cluster.Kubernetes.Type, t.Cluster.Etcd = way, etcd
			t.Cluster.ControlPlaneEndpoint, t.Cluster.LoadBalancer = endpoint.at, *endpoint.by.DeepCopy()
		})
		n.Target.BootstrapMode, n.Target.Members = "", nil // for the pipeline to say
		if errs := n.Target.Validate(field.NewPath("target")); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// outline is a plan without what is in its steps: host by host, each step with what it takes and makes.
func outline(p *plan.Plan) string {
	lines := map[string][]string{}
	for i := range p.Graph().Len() {
		n := p.Graph().Node(i).Value
		m := n.Step.Meta()
		line := fmt.Sprintf("  %-28s %s", n.Module+"/"+n.Task, n.Name)
		for _, takes := range m.Takes {
			line += "  < " + takes
		}
		for _, makes := range m.Makes {
			line += "  > " + makes
		}
		lines[n.Host] = append(lines[n.Host], line)
	}
	var text strings.Builder
	for _, host := range append([]string{plan.Controller}, p.Hosts...) {
		place := host
		if host == plan.Controller {
			place = "controller"
		}
		fmt.Fprintf(&text, "%s\n%s\n", place, strings.Join(lines[host], "\n"))
	}
	return text.String()
}

// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/nulltest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestNullComponents plugs components in that nothing else in the house knows: a folder and a line in a table for each. The plans
// have them, and nothing of those whose place they take.
func TestNullComponents(t *testing.T) {
	tables.Runtimes["null"] = nulltest.Runtime{}
	tables.Networks["null"] = nulltest.Network{}
	tables.LoadBalancers["null"] = func(component.Proxy) (external, internal component.LoadBalancer) {
		both := component.LoadBalancer{Proxy: nulltest.Proxy{}, VirtualAddress: nulltest.VirtualAddress{}}
		return both, both
	}
	tables.Addons["null"] = nulltest.Addon{}
	tables.DNSServers["null"] = nulltest.DNS{}
	tables.ServiceProxies["null"] = map[spec.KubernetesType]component.ServiceProxy{}
	for _, kind := range ways {
		tables.ServiceProxies["null"][kind] = nulltest.ServiceProxy{}
	}
	t.Cleanup(func() {
		delete(tables.DNSServers, "null")
		delete(tables.ServiceProxies, "null")
		delete(tables.Addons, "null")
		delete(tables.Runtimes, "null")
		delete(tables.Networks, "null")
		delete(tables.LoadBalancers, "null")
	})

	null := func(t *spec.Target) {
		t.Cluster.ContainerRuntime = spec.ContainerRuntime{Type: "null", DataDir: "/var/lib/null"}
		t.Cluster.Network.Plugin, t.Cluster.DNS.Type, t.Cluster.Kubernetes.Proxy.Mode = "null", "null", "null"
		t.Cluster.Addons = []spec.Addon{{Name: "null", Values: "replicas: 2\n"}}
		t.Cluster.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{Address: "192.168.0.100"}
		t.Cluster.LoadBalancer.Type = "null"
	}
	for _, way := range ways {
		p, err := pipeline.CreateCluster("prod", []pipeline.Node{
			node("cp1", "192.168.0.11", spec.RoleControlPlane, machine, by(way), null),
			node("w1", "192.168.0.21", spec.RoleWorker, machine, by(way), null),
			node("lb1", "192.168.0.31", spec.RoleLoadBalancer, machine, by(way), null),
		}, bundle(t))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := p.Text(&text); err != nil {
			t.Fatal(err)
		}
		for _, absent := range []string{"flannel", "containerd", "haproxy", "nginx", "keepalived", "kube-vip", "coredns"} {
			if strings.Contains(strings.ToLower(text.String()), absent) {
				t.Errorf("%s: the plan has %s, which the cluster does not", way, absent)
			}
		}
		for i := range p.Graph().Len() { // scripts, too
			n := p.Graph().Node(i)
			raw, err := step.Marshal(n.Value.Step)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.SplitSeq(strings.ToLower(string(raw)), `\n`) {
				for _, absent := range []string{"flannel", "containerd", "ctr ", "cri-o", "crictl", "calico", "kube-ipvs0", "coredns"} {
					if strings.Contains(line, absent) && !strings.HasPrefix(strings.TrimLeft(line, `\t`), "#") {
						t.Errorf("%s: %s has %s, which the cluster does not, in %s", way, n.ID, absent, line)
					}
				}
			}
		}
		golden.File(t, "testdata/null-"+config.Word(way)+".golden", text.String())
		roundTrip(t, p)
	}
}

// TestNullEtcd plugs an etcd in that nothing else in the house knows, by a line in its table. Either way of Kubernetes asks it for all that
// it must know of one, and no step of another is left.
func TestNullEtcd(t *testing.T) {
	tables.Etcds["null"] = nulltest.Etcd{}
	t.Cleanup(func() { delete(tables.Etcds, "null") })
	null := func(t *spec.Target) { t.Cluster.Etcd = spec.Etcd{Type: "null"} }
	joins := func(t *spec.Target) { t.BootstrapMode = spec.BootstrapJoin }
	for _, way := range ways {
		first := node("cp1", "192.168.0.11", spec.RoleControlPlane, machine, by(way), null)
		p, err := pipeline.CreateCluster("prod", []pipeline.Node{
			first, node("cp2", "192.168.0.12", spec.RoleControlPlane, machine, by(way), null, joins),
		}, bundle(t))
		if err != nil {
			t.Fatal(err)
		}
		var nulls []string
		usesIt := false
		for i := range p.Graph().Len() {
			n := p.Graph().Node(i)
			switch of, _, _ := strings.Cut(n.Value.Name, "/"); {
			case of == "null" && n.Value.Host == "cp2":
				nulls = append(nulls, strings.Join(append([]string{n.Value.Name}, n.Value.Meta().Takes...), " "))
			case of == "etcd":
				t.Errorf("%s: the plan has %s, and the cluster has no etcd", way, n.ID)
			}
			raw, err := step.Marshal(n.Value.Step)
			if err != nil {
				t.Fatal(err)
			}
			usesIt = usesIt || strings.Contains(string(raw), "http://127.0.0.1:9")
		}
		if want := []string{"null/claim", "null/member etcd-member/cp1", "null/care"}; !slices.Equal(nulls, want) || !usesIt {
			t.Errorf("%s: the null etcd's steps of cp2 are %q, not %q; the API servers use it: %t", way, nulls, want, usesIt)
		}
		roundTrip(t, p)
		if _, err := pipeline.BackupName(first.Target, pipeline.Backup{}); err == nil {
			t.Errorf("%s: a backup of what has no members has a name", way)
		}
	}
}

// TestUnknownComponent: what is in no table is refused by its field, with what there is.
func TestUnknownComponent(t *testing.T) {
	_, err := pipeline.JoinWorker(node("w1", "192.168.0.21", spec.RoleWorker, machine, func(t *spec.Target) {
		t.Cluster.ContainerRuntime.Type, t.Cluster.Network.Plugin = "no-such", "none-such"
		t.Cluster.LoadBalancer.Type = "nobody"
		t.Cluster.Etcd.Type = "nowhere"
		t.Cluster.Addons = []spec.Addon{{Name: "nothing"}}
	}), bundle(t))
	if want := `host w1: cluster.etcd.type: there is no "nowhere", but ["Binary" "External" "Kubeadm"]
cluster.containerRuntime.type: there is no "no-such", but ["CRIO" "Containerd"]
cluster.network.plugin: there is no "none-such", but ["Calico" "Flannel" "None"]
cluster.loadBalancer.type: there is no "nobody", but ["External" "Infrastructure" "Keepalived" "KubeVIP" "NodeLocal" "None"]
cluster.addons: there is no "nothing", but ["metrics-server"]`; err == nil || err.Error() != want {
		t.Errorf("have %v, want %s", err, want)
	}
}

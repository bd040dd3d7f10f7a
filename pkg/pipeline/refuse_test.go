// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestRefuses(t *testing.T) {
	b := bundle(t)
	control := func(name string, change ...func(*spec.Target)) pipeline.Node {
		return node(name, "192.168.0.11", spec.RoleControlPlane, machine, change...)
	}
	worker := func(name string, change ...func(*spec.Target)) pipeline.Node {
		return node(name, "192.168.0.21", spec.RoleWorker, machine, change...)
	}
	arm, unseen := machine, host.System{}
	arm.Arch = "arm64"
	file := func(f spec.File) func(*spec.Target) {
		return func(t *spec.Target) { t.Node.Files = []spec.File{f} }
	}

	for _, tt := range []struct {
		name string
		make func() (*plan.Plan, error)
		want []string
	}{
		{"a worker as control plane", func() (*plan.Plan, error) { return pipeline.CreateControlPlane(worker("w1"), b) },
			[]string{"host w1", `its role is "Worker"`, "ControlPlane"}},
		{"a bundle without the optional component that is asked for", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(control("cp1", holdsAddress), without(t, "kube-vip"))
		}, []string{"host cp1", "has no kube-vip, which is optional", "kubexm bundle create --with kube-vip", "controlPlaneEndpoint.kubeVIP.image"}},
		{"a bundle without the runtime", func() (*plan.Plan, error) { return pipeline.JoinWorker(worker("w1", crio), without(t, "cri-o")) },
			[]string{"host w1", "has no cri-o, which is optional", "kubexm bundle create --with cri-o"}},
		{"a bundle without the network", func() (*plan.Plan, error) { return pipeline.JoinWorker(worker("w1", byCalico), without(t, "calico")) },
			[]string{"host w1", "has no calico, which is optional", "kubexm bundle create --with calico"}},
		{"a bundle without an addon", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(worker("w1", addons), without(t, "metrics-server"))
		},
			[]string{"host w1", "has no metrics-server, which is optional", "kubexm bundle create --with metrics-server"}},
		{"a value of an addon that is not the user's to say", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(worker("w1", func(t *spec.Target) {
				t.Cluster.Addons = []spec.Addon{{Name: spec.AddonMetricsServer, Values: "apiService: {insecureSkipTLSVerify: true}\n"}}
			}), b)
		}, []string{"host w1", "cluster.addons[metrics-server].values: apiService.insecureSkipTLSVerify is set by kubexm: remove it"}},
		{"a control plane host as worker", func() (*plan.Plan, error) { return pipeline.JoinWorker(control("cp1"), b) },
			[]string{"host cp1", `its role is "ControlPlane"`}},
		{"no control plane", func() (*plan.Plan, error) { return pipeline.CreateCluster("prod", []pipeline.Node{worker("w1")}, b) },
			[]string{"cluster prod", "no host with the role ControlPlane"}},
		{"two that begin", func() (*plan.Plan, error) {
			return pipeline.CreateCluster("prod", []pipeline.Node{control("cp1"), control("cp2")}, b)
		}, []string{"cp1, cp2", "all begin"}},
		{"another cluster's host", func() (*plan.Plan, error) {
			return pipeline.CreateCluster("prod",
				[]pipeline.Node{control("cp1"), worker("w1", func(t *spec.Target) { t.ClusterName = "test" })}, b)
		}, []string{"host w1 is for cluster test"}},
		{"a name twice", func() (*plan.Plan, error) {
			return pipeline.CreateCluster("prod", []pipeline.Node{control("n1"), worker("n1")}, b)
		}, []string{"n1/os/system/system/swap is there twice"}},
		{"a version before the one that the host has", func() (*plan.Plan, error) {
			n := worker("w1")
			n.Was = "v1.36.4"
			return pipeline.JoinWorker(n, b)
		}, []string{"host w1", "kubernetesVersion", "cannot be downgraded", "v1.36.4"}},
		{"a minor version that is skipped", func() (*plan.Plan, error) {
			n := control("cp1")
			n.Was = "v1.34.9"
			return pipeline.CreateControlPlane(n, b)
		}, []string{"host cp1", "kubernetesVersion", "no minor version may be skipped", "v1.35"}},
		{"a kubelet that is newer than an API server", func() (*plan.Plan, error) {
			n := worker("w1")
			n.Was, n.APIServers = "v1.35.4", "v1.35.4"
			return pipeline.JoinWorker(n, b)
		}, []string{"host w1", "v1.36.3 is newer than an API server of the cluster, which is v1.35.4", "upgrade the control plane first"}},
		{"no endpoint", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(worker("w1", func(t *spec.Target) { t.Cluster.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{} }), b)
		}, []string{"host w1", "cluster.controlPlaneEndpoint", "give the address"}},
		{"a host that was not observed", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", spec.RoleWorker, unseen), b)
		}, []string{"host w1", "architecture is not known"}},
		{"a host with one family in a dual stack cluster", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", spec.RoleWorker, machine, dualStack), b)
		}, []string{"host w1", "an address of each family", "only 192.168.0.21 is known", "internalAddresses"}},
		{"an architecture that the bundle lacks", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", spec.RoleWorker, arm), b)
		}, []string{"host w1", "arm64", "containerd v2.4.2 amd64"}},
		{"another version than the bundle's", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(worker("w1", func(t *spec.Target) { t.KubernetesVersion = "v1.35.0" }), b)
		}, []string{"host w1", "is for Kubernetes v1.36.3, not v1.35.0"}},
		{"a file of ours", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(worker("w1", file(spec.File{Path: "/etc/containerd/config.toml", Content: "x"})), b)
		}, []string{"w1/runtime/containerd/containerd/config", "w1/os/user/system/files writes /etc/containerd/config.toml, too"}},
		{"a file that takes the place of a package's", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(worker("w1", file(spec.File{Path: "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", Content: "x"})), b)
		}, []string{"w1/os/user/system/files writes /etc/systemd/system/kubelet.service.d/10-kubeadm.conf, too"}},
		{"what is added to a file of ours", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(worker("w1", file(spec.File{Path: "/etc/containerd/config.toml", Content: "x", Append: spec.AppendEnabled})), b)
		}, []string{"w1/runtime/containerd/containerd/config", "w1/os/user/system/files adds to /etc/containerd/config.toml"}},
		{"a set-user-ID file", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(worker("w1", file(spec.File{Path: "/opt/x", Permissions: "4755", Content: "x"})), b)
		}, []string{"host w1", "files[/opt/x].permissions: 4755"}},
		{"a mode that is none", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(worker("w1", file(spec.File{Path: "/opt/x", Permissions: "rwx", Content: "x"})), b)
		}, []string{"files[/opt/x].permissions", "octal"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.make()
			if err == nil {
				t.Fatal("it was planned")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error says nothing of %q:\n%v", want, err)
				}
			}
		})
	}
}

// A plan depends on few facts of a host, and is stale when one of these is another.
func TestStale(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*host.System)
		want   bool
	}{
		{"nothing", func(*host.System) {}, false},
		{"kernel", func(s *host.System) { s.Kernel = "6.2" }, false},
		{"free space", func(s *host.System) { s.DiskFreeBytes = 1 }, false},
		{"another missing capability", func(s *host.System) { s.MissingCapabilities = []string{"perfmon"} }, false},
		{"architecture", func(s *host.System) { s.Arch = "arm64" }, true},
		{"container", func(s *host.System) { s.Container = "docker" }, true},
		{"control groups", func(s *host.System) { s.CgroupVersion = 1 }, true},
		{"name servers", func(s *host.System) { s.Nameservers = []string{"127.0.0.53"} }, true},
		{"name servers behind systemd-resolved", func(s *host.System) { s.UpstreamNameservers = []string{"192.168.0.54"} }, true},
		{"the IPv6 address", func(s *host.System) { s.DefaultIPv6 = "2001:db8::2" }, true},
		{"OOM scores", func(s *host.System) { s.MissingCapabilities = []string{"sys_resource"} }, true},
	} {
		seen := machine
		tt.change(&seen)
		if got := pipeline.Stale(machine, seen); got != tt.want {
			t.Errorf("%s: stale is %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A token that nobody would join with would be made at every look, and the cluster never be up to date.
func TestNoTokenWithoutWorkers(t *testing.T) {
	b := bundle(t)
	p, err := pipeline.CreateCluster("alone",
		[]pipeline.Node{node("cp1", "10.0.0.1", spec.RoleControlPlane, machine, func(x *spec.Target) { x.ClusterName = "alone" })}, b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Graph().Len() {
		if id := p.Graph().Node(i).ID; strings.Contains(id, "token") {
			t.Errorf("node %s has nobody to be for", id)
		}
	}
}

// What is refused to some is allowed to others: a control plane host goes first, and hosts without a Node have no Kubernetes of any
// version.
func TestFollows(t *testing.T) {
	b := bundle(t)
	cp, w := node("cp1", "192.168.0.11", spec.RoleControlPlane, machine), node("w1", "192.168.0.21", spec.RoleWorker, machine)
	cp.Was, cp.APIServers = "v1.35.4", "v1.35.4"
	if _, err := pipeline.CreateControlPlane(cp, b); err != nil {
		t.Error(err)
	}
	w.Was, w.APIServers = "v1.35.4", "v1.36.3"
	if _, err := pipeline.JoinWorker(w, b); err != nil {
		t.Error(err)
	}
	for _, was := range []string{"v1.36.4", "v1.34.9"} {
		lb, member := node("lb1", "192.168.0.31", spec.RoleLoadBalancer, machine, balanced), node("etcd1", "192.168.0.41", spec.RoleEtcd, machine)
		lb.Was, member.Was = was, was
		if _, err := pipeline.LoadBalancer(lb, b); err != nil {
			t.Error(err)
		}
		if _, err := pipeline.EtcdMember(member, b); err != nil {
			t.Error(err)
		}
	}
}

// holdsAddress has the control plane's hosts hold the address of its endpoint.
func holdsAddress(t *spec.Target) {
	t.Cluster.ControlPlaneEndpoint, t.Cluster.LoadBalancer.Type = virtual, spec.LoadBalancerKubeVIP
}

// without is the bundle without an optional component.
func without(t *testing.T, component string) *artifact.Bundle {
	t.Helper()
	m := bundle(t).Manifest()
	m.Components = maps.Clone(m.Components)
	delete(m.Components, component)
	m.Items = slices.DeleteFunc(slices.Clone(m.Items), func(i artifact.Item) bool { return i.Component == component })
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, artifact.ManifestName), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := artifact.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOwnImageNeedsNoBundle: where hosts pull kube-vip's image, the bundle need not have it, and nothing is imported.
func TestOwnImageNeedsNoBundle(t *testing.T) {
	p, err := pipeline.CreateControlPlane(node("cp1", "192.168.0.11", spec.RoleControlPlane, machine, holdsAddress, func(t *spec.Target) {
		t.Cluster.LoadBalancer.KubeVIP.Image = "registry.example/kube-vip:v1"
	}), without(t, "kube-vip"))
	if err != nil {
		t.Fatal(err)
	}
	if manifest := rendered(p)["etc/kubernetes/manifests/kubexm-kube-vip.yaml"]; !strings.Contains(manifest, "image: registry.example/kube-vip:v1\n") {
		t.Errorf("the static pod is\n%s", manifest)
	}
}

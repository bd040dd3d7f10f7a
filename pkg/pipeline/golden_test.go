// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// bundle has a manifest and no contents: plans are made without reading any.
func bundle(t testing.TB) *artifact.Bundle {
	t.Helper()
	b, err := artifact.Open(t.Context(), filepath.Join("testdata", "bundle"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// machine is a real machine as its observation tells it, and container a host that is one.
var (
	machine = host.System{
		Hostname: "m", OSID: "debian", OSVersion: "12", Arch: "amd64", Kernel: "6.1.0", CgroupVersion: 2, CPUs: 4,
		Nameservers: []string{"192.168.0.53"},
	}
	container = host.System{
		Hostname: "c", OSID: "debian", OSVersion: "12", Arch: "amd64", Kernel: "6.1.0", CgroupVersion: 1, CPUs: 2, Container: "docker",
		Nameservers: []string{"127.0.0.11"}, MissingCapabilities: []string{"sys_resource"},
	}
)

// node is a host of the cluster prod, changed by the functions.
func node(name, address string, role spec.Role, sys host.System, change ...func(*spec.Target)) pipeline.Node {
	t := spec.Target{
		ClusterName: "prod", KubernetesVersion: "v1.36.3", Host: spec.Host{Name: name, Role: role, Address: address},
	}
	t.Cluster.ControlPlaneEndpoint.Address = "192.168.0.11"
	for _, c := range change {
		c(&t)
	}
	t.Cluster.Kubernetes.EncryptByDefault() // as of a cluster that is made now
	t.Default()
	return pipeline.Node{Target: t, System: sys}
}

// custom sets all that a user may say of the cluster.
func custom(t *spec.Target) {
	c := &t.Cluster
	c.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{Domain: "api.example.com", Address: "192.168.0.11", Port: 8443}
	c.Kubernetes.APIServer = spec.APIServer{CertSANs: []string{"api.example"}, ExtraArgs: []spec.Arg{{Name: "audit-log-maxage", Value: "7"}}}
	c.Kubernetes.EncryptionAtRest = spec.EncryptionAtRest{Provider: spec.EncryptionAESCBC, Resources: []string{"secrets", "configmaps"}}
	c.Kubernetes.Kubelet.ExtraArgs = []spec.Arg{{Name: "v", Value: "4"}}
	c.Kubernetes.Proxy = spec.Proxy{Mode: spec.ProxyNFTables, Masquerade: spec.MasqueradeAll}
	c.Kubernetes.FeatureGates = []spec.FeatureGate{{Name: "InPlacePodVerticalScaling", State: spec.FeatureDisabled}}
	c.Etcd = spec.Etcd{Type: spec.EtcdKubeadm, DataDir: "/data/etcd"}
	c.ContainerRuntime.DataDir = "/data/containerd"
	c.ContainerRuntime.Registries = spec.Registries{
		Mirrors:  []spec.Mirror{{Registry: "docker.io", Endpoints: []string{"https://mirror.prod.example:5000"}}},
		Insecure: []string{"mirror.prod.example:5000", "registry.test.example"},
	}
	c.Network.PodCIDRs, c.Network.ServiceCIDRs = []string{"10.20.0.0/16"}, []string{"10.30.0.0/16"}
	c.Network.Flannel, c.Network.HostCIDRs = spec.Flannel{Backend: spec.FlannelHostGW, MTU: 1400}, []string{"10.0.0.0/24"}
	c.DNS = spec.DNS{
		ClusterDomain: "prod.example", EtcHosts: []spec.HostEntry{{Address: "192.168.0.7", Hostnames: []string{"store.example"}}},
		CoreDNS: spec.CoreDNS{
			UpstreamServers: []string{"192.168.0.54"},
			ExternalZones:   []spec.ExternalZone{{Zones: []string{"corp.example:1053"}, Nameservers: []string{"192.168.0.55"}, CacheSeconds: 5}},
		},
	}
	c.System.Packages.Debs = []string{"nfs-common", "socat=1.7.4.4-2"}
	c.System.Sysctls = []spec.Sysctl{{Name: "net.core.somaxconn", Value: "4096"}}
	c.System.Modules = []string{"nf_conntrack"}
	c.System.EtcHosts = []spec.HostEntry{{Address: "192.168.0.7", Hostnames: []string{"store.example", "store"}}}
	t.Node = spec.Node{
		Kubelet:    spec.Kubelet{MaxPods: 50},
		NodeLabels: map[string]string{"disk": "ssd", "topology.kubernetes.io/zone": "a"},
		NodeTaints: []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}},
		Files: []spec.File{
			{Path: "/etc/app/motd", Content: "hello\n"},
			{Path: "/etc/app/token", Owner: "app:app", ContentFrom: spec.ContentSource{Secret: spec.SecretKey{Name: "app", Key: "token"}}},
			{Path: "/etc/app/blob", Encoding: spec.EncodingGzipBase64, Content: "H4sIAAAAAAAAA8tIzcnJ5wIAIDA6NgYAAAA="},
			{Path: "/etc/app/key", Encoding: spec.EncodingBase64, ContentFrom: spec.ContentSource{Secret: spec.SecretKey{Name: "app", Key: "key"}}},
			{Path: "/etc/app/host", ContentFormat: spec.ContentTemplate, Content: "{{ .name }} {{ .kubernetesVersion }}\n"},
			{Path: "/etc/security/limits.conf", Append: spec.AppendEnabled, Content: "app hard nofile 1024"},
		},
		PreCommands: []string{"systemctl mask apt-daily.timer", "set -e\ntouch /a\ntouch /b"}, PostCommands: []string{"echo done"},
	}
	t.Host.InternalAddresses, t.Host.ProviderID = []string{"10.0.0." + t.Host.Address[len("192.168.0."):]}, "kubexm://prod/"+t.Host.Name
}

// rpms are packages of a host of the Red Hat family, which leaves debs to others. Kubernetes is of units, which need packages of their own.
func rpms(t *spec.Target) {
	t.Cluster.Kubernetes.Type, t.Cluster.Etcd.Type = spec.KubernetesKubexm, spec.EtcdKubexm
	t.Cluster.Kubernetes.Proxy.Mode = spec.ProxyIPVS
	t.Cluster.System.Packages = spec.Packages{Debs: []string{"nfs-common"}, RPMs: []string{"nfs-utils", "jq=1.6-1.el9"}}
}

// balanced has an address that load balancers hold, with nginx.
func balanced(t *spec.Target) {
	t.Cluster.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{Address: "192.168.0.100", Port: 6443}
	t.Cluster.LoadBalancer = spec.LoadBalancer{
		Type: spec.LoadBalancerKeepalived, Keepalived: spec.Keepalived{Proxy: spec.LoadBalancerNginx},
	}
	t.Members = []spec.Member{
		{Name: "cp1", Role: spec.RoleControlPlane, Address: "192.168.0.11"}, {Name: "lb1", Role: spec.RoleLoadBalancer, Address: "192.168.0.31"},
	}
}

// inClear encrypts nothing, as a cluster from before there was encryption.
func inClear(t *spec.Target) { t.Cluster.Kubernetes.EncryptionAtRest.Provider = spec.EncryptionNone }

// dualStack gives pods and services addresses of both families, IPv4 first.
func dualStack(t *spec.Target) {
	t.Cluster.Network.PodCIDRs = []string{"10.233.64.0/18", "fd85:ee78:d8a6:8607::1:0/112"}
	t.Cluster.Network.ServiceCIDRs = []string{"10.233.0.0/18", "fd85:ee78:d8a6:8607::1000/116"}
}

// dualStackBinary is that without kubeadm, IPv6 first: of the host's addresses, the Node's first is declared.
func dualStackBinary(t *spec.Target) {
	t.Cluster.Kubernetes.Type, t.Cluster.Etcd.Type = spec.KubernetesKubexm, spec.EtcdKubexm
	t.Cluster.Network.PodCIDRs = []string{"fd85:ee78:d8a6::/48", "10.233.64.0/18"}
	t.Cluster.Network.ServiceCIDRs = []string{"fd85:ee78:d8a7::/108", "10.233.0.0/18"}
	t.Host.InternalAddresses = []string{"2001:db8::" + t.Host.Address[len("192.168.0."):]}
}

// byCalico has Calico connect pods, with settings of its own.
func byCalico(t *spec.Target) {
	t.Cluster.Network.Plugin = spec.NetworkCalico
	t.Cluster.Network.Calico = spec.Calico{VXLANMode: spec.EncapsulationCrossSubnet, VethMTU: 1400, BlockSize: 28}
	t.Cluster.Kubernetes.PodSecurity.Enforce = spec.PodSecurityBaseline
}

// bare leaves the network, the proxy of Services and the DNS server to users.
func bare(t *spec.Target) {
	t.Cluster.Network.Plugin, t.Cluster.Kubernetes.Proxy.Mode, t.Cluster.DNS.Type = spec.NetworkNone, spec.ProxyNone, spec.DNSNone
}

// scenario is a plan that is kept as a golden file.
type scenario struct {
	name string
	make func() (*plan.Plan, error)
}

func scenarios(b *artifact.Bundle) []scenario {
	control, worker := spec.RoleControlPlane, spec.RoleWorker
	others := func(t *spec.Target) {
		t.Cluster.System.Swap, t.Cluster.System.Firewall = spec.PolicyKeep, spec.FirewallOff
	}
	resolved := machine
	resolved.Nameservers, resolved.UpstreamNameservers = []string{"127.0.0.53"}, []string{"192.168.0.53", "fe80::1%eth0", "2001:db8::53"}
	dual := machine
	dual.DefaultInterface, dual.DefaultIPv6 = "eth0", "2001:db8::5"
	rocky := machine
	rocky.OSID, rocky.OSVersion, rocky.Firewall, rocky.NetworkManager = "rocky", "9.5", spec.Firewalld, true
	firewalld, ufw := machine, dual
	firewalld.Firewall, ufw.Firewall = spec.Firewalld, spec.UFW
	return []scenario{
		{"control-plane-machine", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, machine), b)
		}},
		{"control-plane-container", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, container, inClear), b)
		}},
		{"control-plane-custom", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, machine, custom), b)
		}},
		{"worker-machine", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, machine), b)
		}},
		{"worker-own-resolv-keep", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, resolved, others), b)
		}},
		{"worker-custom", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, container, custom), b)
		}},
		{"control-plane-dual-stack", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, dual, dualStack), b)
		}},
		{"worker-dual-stack", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, dual, dualStack), b)
		}},
		{"control-plane-dual-stack-binary", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, dual, dualStackBinary), b)
		}},
		{"worker-dual-stack-binary", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, dual, dualStackBinary), b)
		}},
		{"control-plane-calico", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, machine, byCalico), b)
		}},
		{"worker-calico", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, firewalld, byCalico), b)
		}},
		{"control-plane-none", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, machine, bare), b)
		}},
		{"control-plane-joins-none", func() (*plan.Plan, error) {
			return pipeline.JoinControlPlane(node("cp2", "192.168.0.12", control, machine, bare, by(spec.KubernetesKubexm), func(t *spec.Target) {
				t.BootstrapMode = spec.BootstrapJoin
			}), b)
		}},
		{"worker-none", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, ufw, dualStack, bare, by(spec.KubernetesKubexm)), b)
		}},
		{"control-plane-addons", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, machine, addons), b)
		}},
		{"control-plane-joins-addons", func() (*plan.Plan, error) {
			return pipeline.JoinControlPlane(node("cp2", "192.168.0.12", control, machine, addons, by(spec.KubernetesKubexm), func(t *spec.Target) {
				t.BootstrapMode = spec.BootstrapJoin
			}), b)
		}},
		{"worker-addons", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, machine, addons), b)
		}},
		{"cluster", func() (*plan.Plan, error) {
			return pipeline.CreateCluster("prod", []pipeline.Node{
				node("w1", "192.168.0.21", worker, machine),
				node("cp1", "192.168.0.11", control, machine),
				node("w2", "192.168.0.22", worker, container),
			}, b)
		}},
		{"control-plane-firewalld", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, firewalld), b)
		}},
		{"worker-rpm", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, rocky, rpms), b)
		}},
		{"load-balancer-rpm", func() (*plan.Plan, error) {
			return pipeline.LoadBalancer(node("lb1", "192.168.0.31", spec.RoleLoadBalancer, rocky, balanced), b)
		}},
		{"control-plane-cri-o", func() (*plan.Plan, error) {
			return pipeline.CreateControlPlane(node("cp1", "192.168.0.11", control, machine, crio, by(spec.KubernetesKubexm)), b)
		}},
		{"worker-cri-o", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, container, crio), b)
		}},
		{"worker-ufw", func() (*plan.Plan, error) {
			return pipeline.JoinWorker(node("w1", "192.168.0.21", worker, ufw, dualStack), b)
		}},
	}
}

// addons are one that comes with kubexm and one of the user's own.
func addons(t *spec.Target) {
	t.Cluster.Addons = []spec.Addon{
		{Name: spec.AddonMetricsServer, Values: "replicas: 2\n"},
		{Name: "motd", Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: motd}\ndata: {motd: hello}\n"},
	}
}

// crio has CRI-O run pods, and asks mirrors for their images.
func crio(t *spec.Target) {
	t.Cluster.ContainerRuntime = spec.ContainerRuntime{
		Type: spec.ContainerRuntimeCRIO, DataDir: "/data/containers",
		Registries: spec.Registries{
			Mirrors:  []spec.Mirror{{Registry: "docker.io", Endpoints: []string{"https://mirror.prod.example:5000/v2/hub"}}},
			Insecure: []string{"mirror.prod.example:5000"},
		},
	}
}

func TestGolden(t *testing.T) {
	for _, tt := range scenarios(bundle(t)) {
		t.Run(tt.name, func(t *testing.T) {
			p, err := tt.make()
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := p.Text(&text); err != nil {
				t.Fatal(err)
			}
			golden.File(t, "testdata/"+tt.name+".golden", text.String())
			roundTrip(t, p)
		})
	}
}

// by is a target's way to run Kubernetes.
func by(way spec.KubernetesType) func(*spec.Target) {
	return func(t *spec.Target) { t.Cluster.Kubernetes.Type = way }
}

func TestWithdrawAPIServer(t *testing.T) {
	var text strings.Builder
	for _, way := range ways {
		target := node("cp1", "192.168.0.11", spec.RoleControlPlane, machine, by(way)).Target
		p, err := pipeline.WithdrawAPIServer(target)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Text(&text); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, p)
	}
	golden.File(t, "testdata/withdraw.golden", text.String())
}

func TestSaveEtcd(t *testing.T) {
	var text strings.Builder
	for _, way := range ways {
		for _, etcd := range etcds {
			targets := targetsOf(members(t, way, etcd.set, endpoints[0].set))
			at := slices.IndexFunc(targets, func(t spec.Target) bool { return t.Host.Role == spec.RoleControlPlane })
			p, err := pipeline.SaveEtcd(targets[at], asked)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "===== %s with etcd %s\n", config.Word(way), etcd.name)
			if err := p.Text(&text); err != nil {
				t.Fatal(err)
			}
			roundTrip(t, p)
		}
	}
	golden.File(t, "testdata/save-etcd.golden", text.String())

	worker := node("w1", "192.168.0.21", spec.RoleWorker, machine).Target
	if _, err := pipeline.SaveEtcd(worker, asked); err == nil || !strings.Contains(err.Error(), "host w1: it is no control plane host") {
		t.Errorf("on a worker: %v", err)
	}
}

// The targets of the goldens are ones that a user may have.
func TestGoldenTargetsAreValid(t *testing.T) {
	for _, change := range []func(*spec.Target){func(*spec.Target) {}, custom, crio, dualStack, dualStackBinary, byCalico} {
		n := node("cp1", "192.168.0.11", spec.RoleControlPlane, machine, change)
		if errs := n.Target.Validate(field.NewPath("target")); len(errs) > 0 {
			t.Error(errs.ToAggregate())
		}
	}
}

// roundTrip writes p, reads it back, and wants the same.
func roundTrip(t *testing.T, p *plan.Plan) {
	t.Helper()
	var written bytes.Buffer
	if err := p.Write(&written); err != nil {
		t.Fatal(err)
	}
	read, err := plan.Read(&written)
	if err != nil {
		t.Fatal(err)
	}
	want, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read.Digest(); err != nil || got != want {
		t.Errorf("read back, the plan's digest is %s (%v), not %s", got, err, want)
	}
}

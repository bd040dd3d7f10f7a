// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/binary"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

var done = graph.Output[string]{Name: "done"}

// target is a host of the cluster prod.
func target(role spec.Role, change ...func(*spec.Target)) *spec.Target {
	t := &spec.Target{
		ClusterName: "prod", KubernetesVersion: "v1.36.3",
		Host: spec.Host{Name: "n1", Role: role, Address: "192.168.0.11"},
	}
	t.Cluster.Kubernetes.Type = spec.KubernetesKubexm
	t.Cluster.ControlPlaneEndpoint.Address = "192.168.0.10"
	for _, c := range change {
		c(t)
	}
	t.Cluster.Kubernetes.EncryptByDefault()
	t.Default()
	return t
}

// of is what components know of a host.
func of(t *spec.Target) (binary.Cluster, binary.Node) {
	n := binary.NodeOf(t, kubelet.NodeOf(t, containerd.Runtime{}.Endpoint(), ""))
	n.CgroupDriver, n.CgroupVersion = "systemd", 2
	return binary.Cluster{
		Name: t.ClusterName, Spec: t.Cluster, Etcd: secureEtcd("https://192.168.0.11:2379"),
	}, n
}

func secureEtcd(endpoint string) component.EtcdClient {
	const dir = "/etc/kubernetes/pki/"
	return component.EtcdClient{
		Endpoints: []string{endpoint}, CA: dir + "etcd/ca.crt",
		Certificate: dir + "apiserver-etcd-client.crt", Key: dir + "apiserver-etcd-client.key",
	}
}

// steps are all of a host.
func steps(c binary.Cluster, n binary.Node) []step.Step {
	var programs []step.Artifact
	for _, name := range binary.ProgramNames(n.ControlPlane, "kube-proxy") {
		programs = append(programs, step.Artifact{Path: "kubernetes/" + name, Digest: "sha256:" + name, Size: 1})
	}
	all := []step.Step{binary.Claim(), binary.Programs(programs)}
	if n.ControlPlane {
		all = append(all, binary.Authorities(), binary.Certificates(c, n), binary.Kubeconfigs(c, n),
			apiserver.Files(c.Spec.Kubernetes), apiserver.Encryption(c.Spec.Kubernetes),
			binary.APIServer(c, n), binary.Ready(c, done), binary.ControllerManager(c, n), binary.Scheduler(c, n))
	} else {
		all = append(all, binary.WorkerAuthority())
	}
	return append(all, binary.NodeCertificates(c, n), binary.NodeKubeconfigs(c, n),
		binary.Kubelet(c, n), binary.Proxy(c, n), binary.Joined(graph.Output[string]{Name: "joined"}))
}

// custom sets every field that these steps read.
func custom(t *spec.Target) {
	t.Host.InternalAddresses = []string{"10.0.0.11"}
	t.Host.ProviderID = "kubexm://prod/n1"
	t.Node.NodeLabels = map[string]string{"topology.kubernetes.io/zone": "a", "disk": "ssd"}
	t.Node.NodeTaints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoExecute}}
	t.Node.Kubelet = spec.Kubelet{MaxPods: 50, ExtraArgs: []spec.Arg{{Name: "v", Value: "4"}}}
	t.Node.System.Swap = spec.PolicyKeep
	c := &t.Cluster
	c.ControlPlaneEndpoint.Domain, c.ControlPlaneEndpoint.Port = "api.prod.example", 8443
	c.Network = spec.Network{PodCIDRs: []string{"10.10.0.0/16"}, ServiceCIDRs: []string{"10.20.0.0/20"}}
	c.DNS.ClusterDomain = "prod.internal"
	c.Certificates = spec.Certificates{ValidityDays: 100, RenewBeforeDays: 20}
	c.Kubernetes.APIServer = spec.APIServer{
		CertSANs: []string{"*.prod.example", "203.0.113.7", "192.168.0.11"},
		ExtraArgs: []spec.Arg{
			{Name: "service-account-issuer", Value: "https://issuer.example/new"},
			{Name: "service-account-issuer", Value: "https://issuer.example/$old"},
			{Name: "authorization-config", Value: "/etc/authz \"100%\".yaml"},
			{Name: "profiling", Value: "true"},
			{Name: "audit-log-path", Value: "-"},
		},
	}
	c.Kubernetes.ControllerManager.ExtraArgs = []spec.Arg{{Name: "controllers", Value: "*,-ttl"}, {Name: "v", Value: "4"}}
	c.Kubernetes.Scheduler.ExtraArgs = []spec.Arg{{Name: "kube-api-qps", Value: "200"}}
	c.Kubernetes.Kubelet = spec.Kubelet{PodPidsLimit: 5000, ExtraArgs: []spec.Arg{{Name: "eviction-hard", Value: "memory.available<5%"}}}
	c.Kubernetes.Proxy = spec.Proxy{
		Mode: spec.ProxyIPVS, Masquerade: spec.MasqueradeAll, IPVS: spec.IPVS{ExcludeCIDRs: []string{"192.168.0.10/32"}},
	}
	c.Kubernetes.FeatureGates = []spec.FeatureGate{
		{Name: "InPlacePodLevelResourcesVerticalScaling", State: spec.FeatureDisabled}, {Name: "GracefulNodeShutdown", State: spec.FeatureEnabled},
	}
	c.Kubernetes.NodeCIDRMaskSize = 25
}

// rendered is every text that steps write by its path, and beside them what they do, by name.
func rendered(all []step.Step) map[string]string {
	files := map[string]string{}
	var acts strings.Builder
	var visit func(s step.Step)
	visit = func(s step.Step) {
		switch s := s.(type) {
		case step.Sequence:
			fmt.Fprintf(&acts, "%s: %s\n", s.About.Name, s.About.Description)
			for _, p := range s.Parts {
				visit(p)
			}
		case step.File:
			switch {
			case s.From != nil:
				fmt.Fprintf(&acts, "  program %s\n", s.Path)
			case s.Content.Known():
				fmt.Fprintf(&acts, "  file %s %04o\n", s.Path, uint32(s.Mode))
				files[strings.TrimPrefix(s.Path, "/")] = s.Content.String()
			default:
				fmt.Fprintf(&acts, "  file %s %04o %s\n", s.Path, uint32(s.Mode), s.Content)
			}
		case step.Directory:
			fmt.Fprintf(&acts, "  directory %s %04o\n", s.Path, uint32(s.Mode))
		case step.Certificate:
			fmt.Fprintf(&acts, "  certificate %s, key %s\n    by %s for %s %v, %v, %s, renewed %s before its end\n    of %v %v\n", s.Path, s.KeyPath,
				s.Authority, s.CommonName, s.Organizations, s.Usages, time.Duration(s.Validity),
				time.Duration(s.RenewBefore), s.DNSNames, s.Addresses)
		case step.Service:
			fmt.Fprintf(&acts, "  service %s\n", s.Name)
			for _, w := range s.Watches {
				fmt.Fprintf(&acts, "    watches %s\n", w)
			}
		case step.Claim:
			fmt.Fprintf(&acts, "  claim %s\n", strings.Join(s.Paths, " "))
		case step.Command:
			fmt.Fprintf(&acts, "  command %s, unless %s\n", s.Title, strings.Join(s.Done.Check, " "))
		case step.WaitFor:
			fmt.Fprintf(&acts, "  wait until %s\n", s.Title)
		default:
			panic(fmt.Sprintf("%T", s))
		}
	}
	for _, s := range all {
		visit(s)
	}
	files["steps.txt"] = acts.String()
	return files
}

// TestRendered keeps the texts of the first host, and of the others those that differ from it.
func TestRendered(t *testing.T) {
	var plain map[string]string
	for _, tt := range []struct {
		name   string
		target *spec.Target
		change func(*binary.Cluster, *binary.Node)
	}{
		{"controlplane", target(spec.RoleControlPlane), nil},
		{"worker", target(spec.RoleWorker), nil},
		{"custom", target(spec.RoleControlPlane, custom), nil},
		{"container", target(spec.RoleWorker), func(_ *binary.Cluster, n *binary.Node) {
			n.CgroupDriver, n.CgroupVersion, n.ResolvConf = "cgroupfs", 1, "/etc/kubernetes/resolv.conf"
		}},
		{"plain-etcd", target(spec.RoleControlPlane), func(c *binary.Cluster, _ *binary.Node) {
			c.Etcd = component.EtcdClient{Endpoints: []string{"http://192.168.0.7:2379", "http://192.168.0.8:2379"}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if errs := tt.target.Validate(nil); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			c, n := of(tt.target)
			if tt.change != nil {
				tt.change(&c, &n)
			}
			if err := binary.Check(c, n); err != nil {
				t.Fatal(err)
			}
			all := rendered(steps(c, n))
			maps.DeleteFunc(all, func(name, text string) bool { return plain[name] == text })
			if plain == nil {
				plain = all
			}
			golden.Tree(t, filepath.Join("testdata", tt.name), all)
		})
	}
}

// Plans are shown: no key or token stands in a step.
func TestNoSecretIsShown(t *testing.T) {
	for _, s := range steps(of(target(spec.RoleControlPlane))) {
		raw, err := step.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"-data", "token:", "password", "BEGIN"} {
			if strings.Contains(string(raw), word) {
				t.Errorf("%s has %q: %s", s.Meta().Name, word, raw)
			}
		}
	}
}

// A worker must not have what a control plane host may.
func TestWorkerHasNoKeyOfAnAuthority(t *testing.T) {
	for _, s := range steps(of(target(spec.RoleWorker))) {
		for _, path := range step.Writes(s) {
			if slices.Contains([]string{"/etc/kubernetes/pki/ca.key", "/etc/kubernetes/pki/sa.key", "/etc/kubernetes/admin.conf"}, path) {
				t.Errorf("%s writes %s", s.Meta().Name, path)
			}
		}
	}
}

// Every file that is named in a unit, a kubeconfig or a configuration is one that some step writes.
func TestFilesAreWritten(t *testing.T) {
	c, n := of(target(spec.RoleControlPlane))
	etcd := []string{ // by the steps of etcd
		"/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/apiserver-etcd-client.crt", "/etc/kubernetes/pki/apiserver-etcd-client.key",
	}
	written := slices.Clone(etcd)
	for _, s := range steps(c, n) {
		written = append(written, step.Writes(s)...)
	}
	named := 0
	for name, text := range rendered(steps(c, n)) {
		if name == "steps.txt" {
			continue
		}
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" =\n\"'", r) }) {
			if !strings.HasPrefix(word, "/etc/kubernetes/") && !strings.HasPrefix(word, "/var/lib/kubelet/") || word == "/etc/kubernetes/manifests" {
				continue
			}
			named++
			if !slices.Contains(written, word) {
				t.Errorf("%s names %s, which nothing writes", name, word)
			}
		}
	}
	if named < 40 {
		t.Errorf("only %d files are named", named)
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		role   spec.Role
		change func(*binary.Cluster, *binary.Node)
		want   string
	}{
		{"no cluster's name", spec.RoleWorker, func(c *binary.Cluster, _ *binary.Node) { c.Name = "" }, "the cluster has no name"},
		{"no services", spec.RoleWorker, func(c *binary.Cluster, _ *binary.Node) { c.Spec.Network.ServiceCIDRs = nil }, "network.serviceCIDRs"},
		{"bad services", spec.RoleWorker, func(c *binary.Cluster, _ *binary.Node) {
			c.Spec.Network.ServiceCIDRs = []string{"10.0.0.1"}
		}, `network.serviceCIDRs: "10.0.0.1" is not a network`},
		{"no pods", spec.RoleWorker, func(c *binary.Cluster, _ *binary.Node) { c.Spec.Network.PodCIDRs = nil }, "network.podCIDRs"},
		{"no name", spec.RoleWorker, func(_ *binary.Cluster, n *binary.Node) { n.Name = "" }, "the host has no name"},
		{"a name for an address", spec.RoleWorker, func(_ *binary.Cluster, n *binary.Node) { n.Address = "n1.example" }, `"n1.example" is not an IP address`},
		{"no cgroup driver", spec.RoleWorker, func(_ *binary.Cluster, n *binary.Node) { n.CgroupDriver = "" }, "it is systemd or cgroupfs"},
		{"no TLS", spec.RoleWorker, func(_ *binary.Cluster, n *binary.Node) { n.Server = "http://a:1" }, `"http://a:1" is no URL of the API`},
		{"no port", spec.RoleWorker, func(_ *binary.Cluster, n *binary.Node) { n.Server = "https://a" }, `"https://a" is no URL of the API`},
		{"no own API server", spec.RoleControlPlane, func(_ *binary.Cluster, n *binary.Node) { n.LocalServer = "" }, `"" is no URL of its API server`},
		{"no etcd", spec.RoleControlPlane, func(c *binary.Cluster, _ *binary.Node) { c.Etcd.Endpoints = nil }, "no endpoint of etcd"},
		{"etcd without TLS", spec.RoleControlPlane, func(c *binary.Cluster, _ *binary.Node) {
			c.Etcd.Endpoints = append(c.Etcd.Endpoints, "http://192.168.0.12:2379")
		}, `"http://192.168.0.12:2379" is no https URL`},
		{"etcd with TLS", spec.RoleControlPlane, func(c *binary.Cluster, _ *binary.Node) { c.Etcd.CA = "" }, "is no http URL"},
	} {
		c, n := of(target(tt.role))
		if err := binary.Check(c, n); err != nil {
			t.Fatal(err)
		}
		tt.change(&c, &n)
		if err := binary.Check(c, n); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want one about %q", tt.name, err, tt.want)
		}
	}
	if err := binary.Check(binary.Cluster{}, binary.Node{Node: kubelet.Node{ControlPlane: true}}); strings.Count(err.Error(), "\n") < 6 {
		t.Errorf("not all is reported at once: %v", err)
	}
}

// What is said of a server that is ready, that is not yet, and that ends again and again with what it was given.
func TestReadyScript(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"systemctl": "echo ${restarts:-0}", "journalctl": "echo 'Error: unknown flag: --bad'",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const not = "it says connection refused; the last in its journal (journalctl -u kube-apiserver): Error: unknown flag: --bad"
	for _, tt := range []struct {
		name, ask, change, restarts string
		code                        int
		said                        string
	}{
		{"ready", "exit 0", "/nowhere", "9", 0, ""},
		{"not yet", "echo connection refused >&2; exit 1", dir, "2", 1, not},
		{"not yet, of one that nobody changes", "echo connection refused >&2; exit 1", "/nowhere", "9", 1, not},
		{"not any more", "echo connection refused >&2; exit 1", dir, "3", step.NotAnyMore, not},
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "ready.sh", tt.change, strconv.Itoa(step.NotAnyMore), "sh", "-c", tt.ask)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "restarts="+tt.restarts)
		out, _ := cmd.CombinedOutput()
		if code, said := cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out)); code != tt.code || said != tt.said {
			t.Errorf("%s: it ends with %d and says %q", tt.name, code, said)
		}
	}
}

// authorities are the cluster's, as Secrets.
type authorities struct{ pki.Authorities }

func (a authorities) Secret(ref step.SecretRef) ([]byte, error) {
	pair, ok := a.Get(ref.Name)
	switch {
	case ok && ref.Key == "tls.crt":
		return pair.Cert, nil
	case ok && ref.Key == "tls.key", ref.Name == pki.EncryptionName && ref.Key == pki.EncryptionKeyName && !pair.IsZero():
		return pair.Key.Reveal(), nil
	}
	return nil, errors.New("there is no secret " + ref.String())
}

func (authorities) Output(string) ([]byte, error) { return nil, step.ErrUnknown }

// The certificates that are made are what their readers want.
func TestCertificatesAreAccepted(t *testing.T) {
	made, err := pki.NewAuthorities(pki.CARequest{})
	if err != nil {
		t.Fatal(err)
	}
	c, n := of(target(spec.RoleControlPlane, custom))
	certs := map[string]*x509.Certificate{}
	for _, s := range steps(c, n) {
		for _, want := range step.Certificates(s) {
			e, err := want.Effect(step.View{Values: authorities{made}, Facts: &host.Facts{}})
			if err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(e.Changes[1].(host.File).Content.Reveal())
			if certs[want.Path], err = x509.ParseCertificate(block.Bytes); err != nil {
				t.Fatal(err)
			}
		}
	}
	pool := func(pair pki.KeyPair) *x509.CertPool {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pair.Cert)
		return pool
	}
	const etc, kubelet = "/etc/kubernetes/pki/", "/var/lib/kubelet/pki/"
	for _, tt := range []struct {
		path, subject string
		authority     pki.KeyPair
		usage         x509.ExtKeyUsage
		names         []string
	}{
		{etc + "apiserver.crt", "CN=kube-apiserver", made.Cluster, x509.ExtKeyUsageServerAuth, []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.prod.internal", "api.prod.example", "192.168.0.10",
			"10.0.0.11", "192.168.0.11", "10.20.0.1", "127.0.0.1", "n1", "any.prod.example", "203.0.113.7",
		}},
		{etc + "apiserver-kubelet-client.crt", "CN=kube-apiserver-kubelet-client", made.Cluster, x509.ExtKeyUsageClientAuth, nil},
		{etc + "front-proxy-client.crt", "CN=front-proxy-client", made.FrontProxy, x509.ExtKeyUsageClientAuth, nil},
		{etc + "controller-manager.crt", "CN=system:kube-controller-manager", made.Cluster, x509.ExtKeyUsageClientAuth, nil},
		{etc + "scheduler.crt", "CN=system:kube-scheduler", made.Cluster, x509.ExtKeyUsageClientAuth, nil},
		{etc + "admin.crt", "CN=kubernetes-admin,O=kubeadm:cluster-admins", made.Cluster, x509.ExtKeyUsageClientAuth, nil},
		{kubelet + "kubelet-client.crt", "CN=system:node:n1,O=system:nodes", made.Cluster, x509.ExtKeyUsageClientAuth, nil},
		{kubelet + "kubelet.crt", "CN=system:node:n1,O=system:nodes", made.Cluster, x509.ExtKeyUsageServerAuth, []string{"n1", "10.0.0.11"}},
		{etc + "kube-proxy.crt", "CN=system:kube-proxy", made.Cluster, x509.ExtKeyUsageClientAuth, nil},
	} {
		cert, ok := certs[tt.path]
		delete(certs, tt.path)
		if !ok {
			t.Errorf("%s is not made", tt.path)
			continue
		}
		if got := cert.Subject.String(); got != tt.subject {
			t.Errorf("%s is for %s, want %s", tt.path, got, tt.subject)
		}
		for _, name := range append(tt.names, "") {
			_, err := cert.Verify(x509.VerifyOptions{Roots: pool(tt.authority), KeyUsages: []x509.ExtKeyUsage{tt.usage}, DNSName: name})
			if err != nil {
				t.Errorf("%s for %q: %v", tt.path, name, err)
			}
		}
		if lasts := cert.NotAfter.Sub(cert.NotBefore); lasts < 99*24*time.Hour || lasts > 101*24*time.Hour {
			t.Errorf("%s lasts %s", tt.path, lasts)
		}
	}
	if len(certs) > 0 {
		t.Errorf("others are made too: %v", slices.Sorted(maps.Keys(certs)))
	}
}

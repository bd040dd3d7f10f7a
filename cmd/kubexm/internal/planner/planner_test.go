// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package planner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/target"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const declared = `
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
  - {name: node1, address: 203.0.113.2, internalAddresses: [172.16.0.2], privateKeyPath: /keys/ops}
  - {name: node2, address: 172.16.0.3, privateKeyPath: /keys/ops, labels: {disk: fast}}
  roleGroups: {master: [node1], worker: [node2]}
  kubernetes: {version: v1.36.3}
  controlPlaneEndpoint: {domain: api.prod.example, port: 8443}
`

func parse(t *testing.T) *config.Cluster {
	t.Helper()
	c, _, err := config.Parse([]byte(declared))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func targets(t *testing.T, c *config.Cluster) []spec.Target {
	t.Helper()
	all, err := planner.Targets(c)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTargets(t *testing.T) {
	c := parse(t)
	desired := targets(t, c)
	for managed, targets := range map[bool][]spec.Target{true: desired, false: target.Unmanaged(desired)} {
		first, worker := targets[0], targets[1]
		if got := first.Cluster.ControlPlaneEndpoint.Address; got != "203.0.113.2" {
			t.Errorf("the endpoint's address is %q", got)
		}
		if got := worker.Host.ProviderID; got != "kubexm://default/node2" {
			t.Errorf("the provider ID is %q", got)
		}
		if diff := cmp.Diff(map[string]string{"disk": "fast"}, worker.Node.NodeLabels); diff != "" {
			t.Error(diff)
		}
		tainted := len(worker.Node.NodeTaints) == 1 && worker.Node.NodeTaints[0].Key == clusterv1.NodeUninitializedTaint.Key
		if tainted != managed || len(first.Node.NodeTaints) > 0 {
			t.Errorf("managed %v: taints are %v and %v: only what Cluster API has, it takes off again", managed, first.Node.NodeTaints, worker.Node.NodeTaints)
		}
	}
	if c.Spec.ControlPlaneEndpoint.Address != "" {
		t.Error("the config was changed")
	}
	// The domain is in the hosts' own /etc/hosts, not in this machine's.
	if got := planner.Server(c); got != "https://203.0.113.2:8443" {
		t.Errorf("the server is %q", got)
	}
}

// TestTargetsOfMany: every host knows the members that concern it, one begins, and what does not become a Node has nothing of one.
func TestTargetsOfMany(t *testing.T) {
	c, _, err := config.Parse([]byte(`
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
  - {name: w1, address: 172.16.0.1, labels: {disk: fast}}
  - {name: cp1, address: 172.16.0.2}
  - {name: cp2, address: 172.16.0.3}
  - {name: etcd1, address: 172.16.0.4, labels: {disk: fast}}
  - {name: lb1, address: 172.16.0.5}
  roleGroups: {master: [cp1, cp2], worker: [w1], etcd: [etcd1], loadbalancer: [lb1]}
  controlPlaneEndpoint: {external: kubexm-kn, address: 172.16.0.100}
  kubernetes: {version: v1.36.3}
`))
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]spec.BootstrapMode{}
	balanced, served := []string{"cp1", "cp2", "lb1"}, []string{"cp1", "cp2", "etcd1"}
	concerned := map[string][]string{"w1": nil, "cp1": served, "cp2": served, "etcd1": {"etcd1"}, "lb1": balanced}
	for _, target := range targets(t, c) {
		orders[target.Host.Name] = target.BootstrapMode
		if errs := target.Validate(field.NewPath(target.Host.Name)); len(errs) > 0 &&
			target.Host.Role != spec.RoleWorker { // its taint is ours
			t.Error(errs.ToAggregate())
		}
		var members []string
		for _, m := range target.Members {
			members = append(members, m.Name)
		}
		if diff := cmp.Diff(concerned[target.Host.Name], members); diff != "" {
			t.Errorf("%s knows (-want +got):\n%s", target.Host.Name, diff)
		}
		if isNode := target.Host.ProviderID != ""; isNode != target.Host.Role.IsNode() || !isNode && len(target.Node.NodeLabels) > 0 {
			t.Errorf("%s: provider ID %q, labels %v", target.Host.Name, target.Host.ProviderID, target.Node.NodeLabels)
		}
	}
	want := map[string]spec.BootstrapMode{"w1": "", "cp1": spec.BootstrapInit, "cp2": spec.BootstrapJoin, "etcd1": spec.BootstrapInit, "lb1": ""}
	if diff := cmp.Diff(want, orders); diff != "" {
		t.Error(diff)
	}
}

func TestEndpoint(t *testing.T) {
	for _, c := range []struct{ endpoint, address, server string }{
		{"{}", "172.16.0.2", "https://172.16.0.2:6443"}, // not where it is reached over SSH
		{"{internal: haproxy}", "172.16.0.2", "https://172.16.0.2:6443"},
		{"{internal: nginx, address: 172.16.0.2, domain: api.prod.example}", "172.16.0.2", "https://172.16.0.2:6443"},
		{"{internal: kube-vip, vip: 172.16.0.100}", "172.16.0.100", "https://172.16.0.100:6443"},
		{"{external: external, lb_address: 203.0.113.7, domain: api.prod.example, port: 443}", "203.0.113.7", "https://203.0.113.7:443"},
		{"{external: external, externalDNS: true, domain: api.prod.example}", "", "https://api.prod.example:6443"},
	} {
		cluster, _, err := config.Parse([]byte(`
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts: [{name: w1, address: 172.16.0.1}, {name: cp1, address: "2001:db8::2", internalAddresses: [172.16.0.2]}]
  roleGroups: {master: [cp1], worker: [w1]}
  kubernetes: {version: v1.36.3}
  controlPlaneEndpoint: ` + c.endpoint + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		target := targets(t, cluster)[0]
		if got := target.Cluster.ControlPlaneEndpoint.Address; got != c.address {
			t.Errorf("%s: the address is %q", c.endpoint, got)
		}
		if got := planner.Server(cluster); got != c.server {
			t.Errorf("%s: the server is %q", c.endpoint, got)
		}
	}
}

// TestEtcdSecrets: what an external etcd is reached with is checked before any host is.
func TestEtcdSecrets(t *testing.T) {
	ca, err := pki.NewCA(pki.CARequest{CommonName: "etcd"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Sign(pki.LeafRequest{CommonName: "client", Usages: []pki.Usage{pki.Client}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := config.EtcdFiles{CA: write("ca.crt", ca.Cert), Cert: write("tls.crt", leaf.Cert), Key: write("tls.key", leaf.Key.Reveal())}
	secrets, err := planner.EtcdSecrets("prod-etcd-external", files)
	if err != nil {
		t.Fatal(err)
	}
	trust := &planner.Trust{Secrets: secrets}
	if got, err := trust.Secret(step.SecretRef{Name: "prod-etcd-external", Key: "tls.crt"}); err != nil || string(got) != string(leaf.Cert) {
		t.Errorf("the certificate is %q (%v)", got, err)
	}
	if _, err := trust.Secret(step.SecretRef{Name: "prod-etcd-external", Key: "other"}); err == nil {
		t.Error("a key that there is not must be refused")
	}
	for what, bad := range map[string]config.EtcdFiles{
		"is not there":         {CA: files.CA, Cert: files.Cert, Key: filepath.Join(dir, "none")},
		"is no certificate":    {CA: files.Key, Cert: files.Cert, Key: files.Key},
		"belongs to something": {CA: files.CA, Cert: files.CA, Key: files.Key},
	} {
		if _, err := planner.EtcdSecrets("x", bad); err == nil || strings.Contains(err.Error(), "PRIVATE KEY") {
			t.Errorf("what %s: %v", what, err)
		}
	}
	if secrets, err := planner.EtcdSecrets("x", config.EtcdFiles{}); err != nil || secrets != nil {
		t.Errorf("without files: %v, %v", secrets, err)
	}
}

func TestTrust(t *testing.T) {
	authorities, err := pki.NewAuthorities(pki.CARequest{})
	if err != nil {
		t.Fatal(err)
	}
	trust := &planner.Trust{Authorities: authorities, Cluster: "prod", Server: "https://172.16.0.2:6443"}
	for _, name := range []string{"ca", "etcd", "proxy", "sa"} {
		for _, key := range []string{"tls.crt", "tls.key"} {
			if value, err := trust.Secret(step.SecretRef{Name: name, Key: key}); err != nil || len(value) == 0 {
				t.Errorf("%s/%s: %v", name, key, err)
			}
		}
	}
	for _, ref := range []step.SecretRef{{Name: "ca", Key: "password"}, {Name: "other", Key: "tls.crt"}} {
		if _, err := trust.Secret(ref); err == nil {
			t.Errorf("%s must be refused", ref)
		}
	}
	kubeconfig, err := trust.Kubeconfig(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if rest.Host != trust.Server || len(rest.CertData) == 0 {
		t.Errorf("the kubeconfig leads to %q", rest.Host)
	}
}

// TestPlanOfTemplates: what users start with can be planned, whatever its hosts are for.
func TestPlanOfTemplates(t *testing.T) {
	bundle, err := artifact.Open(t.Context(), "../../../../pkg/pipeline/testdata/bundle", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range []string{"quickstart", "ha"} {
		content, err := os.ReadFile("../../../../templates/" + template + "/config.yaml")
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := config.Parse(content)
		if err != nil {
			t.Fatal(err)
		}
		targets, systems := targets(t, c), map[string]host.System{}
		for _, target := range targets {
			systems[target.Host.Name] = host.System{
				OSID: "debian", OSVersion: "12", Arch: "amd64", CgroupVersion: 2, DefaultInterface: "eth0", Nameservers: []string{"172.16.0.1"},
			}
		}
		p, err := planner.Plan(targets, systems, bundle)
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if diff := cmp.Diff(len(c.Hosts), len(p.Hosts)); diff != "" {
			t.Errorf("%s: hosts of the plan: %s", template, diff)
		}
	}
}

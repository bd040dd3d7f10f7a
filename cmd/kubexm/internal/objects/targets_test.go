// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// kinds are configs of all kinds of clusters, by their names: the templates, and each way to run Kubernetes with each etcd behind each
// endpoint.
func kinds(t *testing.T) map[string]*config.Cluster {
	t.Helper()
	texts := map[string]string{"declared": declared, "highly-available": highlyAvailable}
	for _, template := range []string{"quickstart", "ha"} {
		content, err := os.ReadFile(filepath.Join("../../../../templates", template, "config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		texts[template] = string(content)
	}
	const none, kh, kn = "{}", "{external: kubexm-kh, address: 172.16.0.100}", "{external: kubexm-kn, address: 172.16.0.100}"
	for _, way := range []string{"kubeadm", "kubexm"} {
		for etcd, settings := range map[string]string{
			"kubeadm": "{type: kubeadm}", "stacked": "{type: kubexm}", "dedicated": "{type: kubexm}",
			"external": `{type: external, external: {endpoints: ["http://172.16.9.1:2379", "http://172.16.9.2:2379"]}}`,
		} {
			for _, endpoint := range []string{
				none, kh, kn, "{external: external, domain: api.example.com, lb_address: 172.16.0.200}",
				"{external: external, externalDNS: true, domain: api.prod.example}", "{internal: haproxy}", "{internal: nginx}",
				"{internal: kube-vip, vip: 172.16.0.100}",
			} {
				hosts, groups := "", `master: ["cp[1:3]"], worker: [w1, w2]`
				names := []string{"w1", "cp1", "cp2", "cp3", "w2"}
				if endpoint == none {
					names, groups = []string{"w1", "cp1", "w2"}, "master: [cp1], worker: [w1, w2]"
				}
				if etcd == "dedicated" {
					names, groups = append(names, "e1", "e2", "e3"), groups+`, etcd: ["e[1:3]"]`
				}
				if endpoint == kh || endpoint == kn {
					names, groups = append(names, "lb1", "lb2"), groups+`, loadbalancer: [lb1, lb2]`
				}
				for i, name := range names {
					labels := ""
					if name == "w2" {
						labels = ", labels: {disk: fast}"
					}
					hosts += fmt.Sprintf("\n  - {name: %s, address: 203.0.113.%d, internalAddresses: [172.16.0.%d], privateKeyPath: /keys/ops%s}", name, i+2, i+2, labels)
				}
				texts[strings.Join([]string{way, etcd, endpoint}, " ")] = fmt.Sprintf(`
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:%s
  roleGroups: {%s}
  controlPlaneEndpoint: %s
  kubernetes: {version: v1.36.3, type: %s}
  etcd: %s
`, hosts, groups, endpoint, way, settings)
			}
		}
	}
	all := map[string]*config.Cluster{}
	for name, text := range texts {
		c, _, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = c
	}
	return all
}

// inputs are what a config is made objects of.
func inputs(c *config.Cluster, namespace string) objects.Inputs {
	endpoint := &c.Spec.ControlPlaneEndpoint
	at := endpoint.Address
	if endpoint.DomainResolution == spec.DomainExternalDNS {
		at = endpoint.Domain
	} else if at == "" {
		at = "172.16.0.3"
	}
	return objects.Inputs{
		Namespace: namespace, Endpoint: at,
		HostKey:    func(host string) string { return "SHA256:" + strings.Repeat("a", 43) },
		PrivateKey: func(string) secret.Value { return secret.New("private key") },
	}
}

// TestTargets: a host's place among the others comes from the objects, and whatever does not concern it is nothing that its plan depends
// on.
func TestTargets(t *testing.T) {
	bundle, err := artifact.Open(t.Context(), "../../../../pkg/pipeline/testdata/bundle", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			targets, err := objects.Targets(objects.Of(c, inputs(c, "default")))
			if err != nil {
				t.Fatal(err)
			}
			arranged := make([]spec.Target, len(targets))
			first := map[spec.Role]int{}
			for i, target := range targets {
				if target.Host.Name != c.Hosts[i].Name || target.Host.Role != c.Hosts[i].Spec().Role {
					t.Errorf("host %d is the %s %s, want the %s %s", i, target.Host.Role, target.Host.Name, c.Hosts[i].Spec().Role, c.Hosts[i].Name)
				}
				if target.BootstrapMode == spec.BootstrapInit {
					first[target.Host.Role]++
				}
				arranged[i] = target
				arranged[i].BootstrapMode, arranged[i].Members = "", nil // for the pipeline to say, of all hosts
			}
			for role, n := range first {
				if n != 1 {
					t.Errorf("%d hosts begin as %s", n, role)
				}
			}
			if planOf(t, arranged, bundle) != planOf(t, targets, bundle) {
				t.Error("the plan depends on who says which host begins and what the members are")
			}
		})
	}
}

// planOf is the digest of a whole cluster's plan.
func planOf(t *testing.T, targets []spec.Target, bundle *artifact.Bundle) string {
	t.Helper()
	var nodes []pipeline.Node
	for _, target := range targets {
		nodes = append(nodes, pipeline.Node{Target: target, System: host.System{
			OSID: "debian", OSVersion: "12", Arch: "amd64", CgroupVersion: 2, DefaultInterface: "eth0", Nameservers: []string{"172.16.0.1"},
		}})
	}
	p, err := pipeline.CreateCluster(targets[0].ClusterName, nodes, bundle)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

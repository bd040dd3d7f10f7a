// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

const declared = `
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
  - {name: node1, address: 203.0.113.2, internalAddresses: [172.16.0.2], user: ops, privateKeyPath: /keys/ops}
  - {name: node2, address: 172.16.0.3, port: 2222, user: ops, password: "pass word"}
  - {name: node3, address: 172.16.0.4, privateKeyPath: /keys/ops, arch: arm64, labels: {disk: fast}}
  - {name: node4, address: 172.16.0.5, privateKeyPath: /keys/ops, labels: {disk: fast}}
  roleGroups: {master: [node1], worker: ["node[2:4]"]}
  kubernetes: {version: v1.36.3}
`

// highlyAvailable has hosts that do not become Nodes, and an etcd that is reached by files.
const highlyAvailable = `
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
  - {name: node1, address: 172.16.0.2, privateKeyPath: /keys/ops}
  - {name: node2, address: 172.16.0.3, privateKeyPath: /keys/ops}
  - {name: node3, address: 172.16.0.4, privateKeyPath: /keys/ops}
  - {name: etcd1, address: 172.16.0.5, privateKeyPath: /keys/ops}
  - {name: lb1, address: 172.16.0.6, privateKeyPath: /keys/ops}
  roleGroups: {master: ["node[1:3]"], etcd: [etcd1], loadbalancer: [lb1]}
  controlPlaneEndpoint: {externalLoadBalancer: kubexm, lb_address: 172.16.0.100, domain: api.prod.example}
  kubernetes: {version: v1.36.3, type: kubexm, encryptionAtRest: {provider: None}}
  disruption: {approval: Required, maintenanceWindows: [{start: "0 22 * * SAT", durationMinutes: 60}]} # for the command alone
`

// behindJumpHosts has hosts that are reached through a jump host each way: with a key, with a password, and with what OpenSSH has. node4 is
// reached directly.
const behindJumpHosts = `
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  proxyJump: {host: bastion.example.org, user: jump, privateKeyPath: /keys/jump}
  hosts:
  - {name: node1, address: 10.20.0.11, user: ops, privateKeyPath: /keys/ops}
  - {name: node2, address: 10.20.0.12, user: ops, proxyJump: {host: 203.0.113.7, port: 2222, user: gate, password: "pass word"}}
  - {name: node3, address: 10.20.0.13, user: ops, password: "pass word", proxyJump: {host: 203.0.113.8, user: jump}}
  - {name: node4, address: 203.0.113.4, user: ops, privateKeyPath: /keys/ops, proxyJump: none}
  roleGroups: {master: [node1], worker: ["node[2:4]"]}
  kubernetes: {version: v1.36.3}
`

// TestObjects keeps what configs mean in objects in files that a person can read.
func TestObjects(t *testing.T) {
	for _, c := range []struct {
		name, config string
		in           objects.Inputs
	}{
		{"objects", declared, objects.Inputs{Endpoint: "203.0.113.2"}},
		{"highly-available", highlyAvailable, objects.Inputs{
			Endpoint: "172.16.0.100",
			Secrets: map[string]map[string]secret.Value{"prod-etcd-external": {
				"ca.crt": secret.New("etcd's authority"), "tls.crt": secret.New("client certificate"), "tls.key": secret.New("client key"),
			}},
		}},
		{"jump-hosts", behindJumpHosts, objects.Inputs{Endpoint: "10.20.0.11"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			golden.File(t, "testdata/"+c.name+".golden.yaml", render(t, c.config, c.in))
		})
	}
}

// render is a config's objects as text.
func render(t *testing.T, text string, in objects.Inputs) string {
	t.Helper()
	c, _, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	pair := func(name string) pki.KeyPair {
		return pki.KeyPair{Cert: []byte(name + " certificate"), Key: secret.New(name + " key")}
	}
	in.Namespace = "default"
	in.Authorities = pki.Authorities{Cluster: pair("ca"), Etcd: pair("etcd"), FrontProxy: pair("proxy"), ServiceAccount: pair("sa")}
	if c.Spec.Kubernetes.EncryptionAtRest.IsOn() {
		in.Authorities.Encryption.Key = secret.New("encryption key")
	}
	in.HostKey = func(host string) string { return "SHA256:" + host }
	in.JumpHostKey = func(host string) string { return "SHA256:the jump host of " + host }
	// keyOf is the private key in the file that a config names of a host.
	keyOf := func(name string, path func(config.Host) string) secret.Value {
		at := slices.IndexFunc(c.Hosts, func(h config.Host) bool { return h.Name == name })
		if path(c.Hosts[at]) == "" {
			return secret.Value{}
		}
		return secret.New("private key")
	}
	in.PrivateKey = func(name string) secret.Value {
		return keyOf(name, func(h config.Host) string { return h.PrivateKeyPath })
	}
	in.JumpPrivateKey = func(name string) secret.Value {
		return keyOf(name, func(h config.Host) string { return h.ProxyJump.PrivateKeyPath })
	}
	var out strings.Builder
	for _, object := range objects.Of(c, in) {
		if s, is := object.(*corev1.Secret); is {
			// Readable, and the same thing to the API server.
			s.StringData = map[string]string{}
			for key, value := range s.Data {
				s.StringData[key] = string(value)
			}
			s.Data = nil
		}
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(document))
	}
	return out.String()
}

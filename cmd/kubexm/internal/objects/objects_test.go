// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

var update = flag.Bool("update", false, "write the golden files")

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

// TestObjects keeps what a config means in objects in a file that a person can read.
func TestObjects(t *testing.T) {
	c, _, err := config.Parse([]byte(declared))
	if err != nil {
		t.Fatal(err)
	}
	pair := func(name string) pki.KeyPair {
		return pki.KeyPair{Cert: []byte(name + " certificate"), Key: secret.New(name + " key")}
	}
	var text strings.Builder
	for _, object := range objects.Of(c, objects.Inputs{
		Namespace: "default", Endpoint: "203.0.113.2",
		Authorities: pki.Authorities{Cluster: pair("ca"), Etcd: pair("etcd"), FrontProxy: pair("proxy"), ServiceAccount: pair("sa")},
		HostKey:     func(host string) string { return "SHA256:" + host },
		PrivateKey: func(host string) secret.Value {
			if host == "node2" {
				return secret.Value{}
			}
			return secret.New("private key")
		},
	}) {
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
		text.WriteString("---\n" + string(document))
	}
	const golden = "testdata/objects.golden.yaml"
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", golden, diff)
	}
}

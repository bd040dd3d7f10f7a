// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package direct_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/direct"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
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

func TestTargets(t *testing.T) {
	c := parse(t)
	for _, managed := range []bool{false, true} {
		targets := direct.Targets(c, managed)
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
	if got := direct.Server(c); got != "https://203.0.113.2:8443" {
		t.Errorf("the server is %q", got)
	}
}

func TestTrust(t *testing.T) {
	authorities, err := pki.NewAuthorities(pki.CARequest{})
	if err != nil {
		t.Fatal(err)
	}
	trust := &direct.Trust{Authorities: authorities, Cluster: "prod", Server: "https://172.16.0.2:6443"}
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

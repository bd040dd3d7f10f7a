// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

const (
	newer = "v1.36.3"
	older = "v1.35.4"
)

// TestUpgrade brings highly available clusters with three workers to the next minor version of Kubernetes by one command.
func TestUpgrade(t *testing.T) {
	for _, kind := range []struct {
		name           string
		hosts          int
		spec, strategy string
	}{
		{"binary, in place", 8, `  roleGroups: {master: [$1, $2, $3], worker: [$4, $5, $6], loadbalancer: [$7, $8]}
  kubernetes: {version: $VERSION, type: kubexm}
  etcd: {type: kubexm}
  controlPlaneEndpoint: {externalLoadBalancer: kubexm-kh, lb_address: $VIP}
`, "InPlace"},
		{"kubeadm, in place", 8, `  roleGroups: {master: [$1, $2, $3], worker: [$4, $5, $6], loadbalancer: [$7, $8]}
  kubernetes: {version: $VERSION, type: kubeadm}
  etcd: {type: kubeadm}
  controlPlaneEndpoint: {externalLoadBalancer: kubexm-kh, lb_address: $VIP}
`, "InPlace"},
		{"kubeadm, hosts replaced", 6, `  roleGroups: {master: [$1, $2, $3], worker: [$4, $5, $6]}
  kubernetes: {version: $VERSION, type: kubeadm}
  etcd: {type: kubexm}
  controlPlaneEndpoint: {internalLoadbalancer: haproxy}
`, "RollingUpdate"},
		{"binary, hosts replaced", 8, `  roleGroups: {master: [$1, $2, $3], worker: [$4, $5, $6], loadbalancer: [$7, $8]}
  kubernetes: {version: $VERSION, type: kubexm}
  etcd: {type: kubexm}
  controlPlaneEndpoint: {externalLoadBalancer: kubexm-kh, lb_address: $VIP}
`, "RollingUpdate"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			next, err := filepath.Abs(cmp.Or(os.Getenv("KUBEXM_BUNDLE"), filepath.Join("..", "..", "build", "bundle")))
			if err != nil {
				t.Fatal(err)
			}
			previous := cmp.Or(os.Getenv("KUBEXM_BUNDLE_PREVIOUS"), filepath.Join(filepath.Dir(next), "bundle-"+older))
			if _, err := os.Stat(previous); err != nil {
				t.Fatalf("the bundle of %s is missing: make artifacts-previous: %v", older, err)
			}
			c := start(t, "hau", kind.hosts, strings.ReplaceAll(kind.spec, "$VERSION", older))
			c.Bundle = previous
			c.create()
			c.versions(older)
			budget := &workload.Budget{Client: c.api(5 * time.Second), Replicas: 3, Least: 2, Image: "registry.k8s.io/pause:3.10.2"}
			if err := budget.Deploy(t.Context()); err != nil {
				t.Fatal(err)
			}
			before, err := budget.Pods(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			kept, writes := budget.Watch(t.Context()), c.written()

			c.Bundle = next
			c.kubexm("upgrade", "cluster", "-f", c.Config(), "--to", newer, "--strategy", kind.strategy,
				"--bundle", c.Bundle, "--known-hosts", c.KnownHosts, "--yes")

			c.stopped(writes)
			seen, err := kept()
			if err != nil {
				t.Error(err)
			}
			t.Log(seen)
			c.versions(newer)
			after, err := budget.Pods(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for pod := range after {
				if on, was := before[pod]; was {
					t.Errorf("the Pod %s has been on %s all the time: its Node was not drained", pod, on)
				}
			}
			c.works()
			c.staysAsItIs()
			c.isReset()
		})
	}
}

// versions wants every Node to have this version, and to take Pods.
func (c *cluster) versions(want string) {
	c.t.Helper()
	list, err := c.api(10*time.Second).CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(list.Items) == 0 {
		c.t.Error("there are no Nodes")
	}
	for _, n := range list.Items {
		if is := n.Status.NodeInfo.KubeletVersion; is != want {
			c.t.Errorf("the Node %s has %s, want %s", n.Name, is, want)
		}
		if n.Spec.Unschedulable {
			c.t.Errorf("the Node %s is cordoned", n.Name)
		}
	}
}

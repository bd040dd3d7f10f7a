// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/smoke/proof"
)

// TestNoNetwork makes clusters without a network, a kube-proxy and a DNS server. Their Nodes register, and are Ready when the user has
// installed these: what kubexm would have installed is what the user takes here. Before and after, a second run changes nothing.
func TestNoNetwork(t *testing.T) {
	for _, by := range []string{"kubeadm", "kubexm"} {
		t.Run(by, func(t *testing.T) {
			c := start(t, "hann", 2, strings.ReplaceAll(`  roleGroups: {master: [$1], worker: [$2]}
  kubernetes: {version: v1.36.3, type: $BY, proxyMode: none}
  network: {plugin: none}
  dns: {type: none}
`, "$BY", by))
			for _, part := range []struct {
				name string
				do   func(*cluster)
			}{
				{"made", func(c *cluster) { c.create(); c.lacksNetwork() }},
				{"as it is", (*cluster).staysAsItIs},
				{"installed by the user", func(c *cluster) { c.installsNetwork(); c.works() }},
				{"as it is with that", (*cluster).staysAsItIs},
				{"reset", (*cluster).isResetWithoutNetwork},
			} {
				if !t.Run(part.name, func(t *testing.T) { part.do(c.in(t)) }) {
					t.FailNow() // what comes next would not tell anything
				}
			}
		})
	}
}

// lacksNetwork wants Nodes that have registered and say that they have no network, and nothing of kubexm's in their place.
func (c *cluster) lacksNetwork() {
	c.t.Helper()
	nodes := c.nodes()
	if len(nodes) != len(c.lab.Hosts) {
		c.t.Errorf("there are %d Nodes of %d hosts", len(nodes), len(c.lab.Hosts))
	}
	for i := range nodes {
		said := ""
		for _, now := range nodes[i].Status.Conditions {
			if now.Type == corev1.NodeReady {
				said = string(now.Status) + " " + now.Message
			}
		}
		if !strings.HasPrefix(said, "False ") || !strings.Contains(said, "NetworkPluginNotReady") {
			c.t.Errorf("%s says of being Ready: %s", nodes[i].Name, said)
		}
	}
	sets, err := c.api(10*time.Second).AppsV1().DaemonSets("").List(c.t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) > 0 {
		c.t.Errorf("there are %d DaemonSets (%v)", len(sets.Items), err)
	}
	for _, h := range c.lab.Hosts {
		if out, err := h.Exec(c.t.Context(), "pgrep", "-x", "kube-proxy"); err == nil {
			c.t.Errorf("kube-proxy runs on %s: %s", h.Name, out)
		}
	}
}

func (c *cluster) nodes() []corev1.Node {
	c.t.Helper()
	list, err := c.api(10*time.Second).CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// installsNetwork is the user, who installs flannel, kube-proxy as a DaemonSet and CoreDNS: as a plan of a cluster that has them would.
func (c *cluster) installsNetwork() {
	c.t.Helper()
	for image, as := range map[string]string{"flannel": "", "flannel-cni-plugin": "", "coredns": "", "kube-proxy": kubeproxy.Image} {
		c.proves(func(of *proof.Cluster, ctx context.Context) error {
			ref, err := of.Load(ctx, c.nodes(), image)
			for _, h := range c.lab.Hosts {
				if as != "" && err == nil {
					c.on(h, "/usr/local/bin/ctr", "-n", "k8s.io", "images", "tag", "--force", ref, as)
				}
			}
			return err
		})
	}
	api, err := kube.New(c.rest(time.Minute))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, s := range c.networkSteps() {
		if err := s(c.t.Context(), api); err != nil {
			c.t.Fatal(err)
		}
	}
	err = wait.PollUntilContextTimeout(c.t.Context(), time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, n := range c.nodes() {
			if api.NodeReady(ctx, n.Name) != nil {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		c.t.Fatalf("Nodes do not become Ready: %v", err)
	}
}

// networkSteps are what a plan of a cluster with the defaults does for its network.
func (c *cluster) networkSteps() []func(context.Context, *kube.Cluster) error {
	c.t.Helper()
	store, err := artifact.OpenStore("")
	if err != nil {
		c.t.Fatal(err)
	}
	bundle, err := artifact.Open(c.t.Context(), c.Bundle, store)
	if err != nil {
		c.t.Fatal(err)
	}
	first := c.lab.Hosts[0]
	target := spec.Target{
		ClusterName: clusterName, KubernetesVersion: "v1.36.3", BootstrapMode: spec.BootstrapInit,
		Host: spec.Host{Name: first.Name, Address: first.Address, Role: spec.RoleControlPlane},
	}
	target.Cluster.ControlPlaneEndpoint.Address = first.Address
	p, err := pipeline.CreateControlPlane(pipeline.Node{Target: target, System: host.System{
		Hostname: first.Name, OSID: "debian", OSVersion: "12", Arch: runtime.GOARCH, CgroupVersion: 2, CPUs: 2, Container: "docker",
	}}, bundle)
	if err != nil {
		c.t.Fatal(err)
	}
	var all []func(context.Context, *kube.Cluster) error
	for i := range p.Graph().Len() {
		n := p.Graph().Node(i).Value
		sequence, ok := n.Step.(step.Sequence)
		if n.Host != plan.Controller || n.Module != "network" || !ok {
			continue
		}
		for _, part := range sequence.Parts {
			switch s := part.(type) {
			case step.Apply:
				all = append(all, func(ctx context.Context, api *kube.Cluster) error { return api.Apply(ctx, []byte(s.Manifest.String())) })
			case step.Release:
				all = append(all, func(ctx context.Context, api *kube.Cluster) error {
					chart, err := chartOf(bundle, s.Chart.Path)
					if err != nil {
						return err
					}
					return api.InstallRelease(ctx, step.HelmRelease{
						Name: s.Name, Namespace: s.Namespace, Chart: chart, Values: []byte(s.Values.String()),
					})
				})
			}
		}
	}
	if len(all) != 3 {
		c.t.Fatalf("a network, a proxy and a DNS server take %d steps", len(all))
	}
	return all
}

func chartOf(b *artifact.Bundle, path string) ([]byte, error) {
	file, err := b.File(path)
	if err != nil {
		return nil, err
	}
	content, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

// isResetWithoutNetwork deletes the cluster, and has the user remove what flannel and kube-proxy left: only then the hosts are what they
// were before.
func (c *cluster) isResetWithoutNetwork() {
	c.t.Helper()
	c.kubexm("delete", "cluster", clusterName, "--yes")
	left := flannel.Network{}.Residue().And(kubeproxy.Pods{}.Residue())
	for _, h := range c.lab.Hosts {
		c.on(h, component.PodCleanups(left)[0].Argv...)
		c.on(h, append([]string{"rm", "-rf"}, left.Paths...)...)
		c.on(h, "sysctl", "-qw", "net.ipv4.conf.all.route_localnet=0") // the user's kube-proxy has set it
	}
	c.lab.WantReset(c.t, c.given...)
}
